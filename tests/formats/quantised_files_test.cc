// Models whose matrices are saved in bf16, int8 or int4.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/bf16.h"
#include "base/expect_error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "checkpoint/safetensors.h"
#include "formats/integer_weights.h"
#include "formats/model_files.h"
#include "generate/random_transformer.h"
#include "model/comparison.h"
#include "support/gpt2_names.h"
#include "tensor/dtype.h"

namespace heed {
namespace {

using kernels::WeightFormat;
using testing::expect_error;
using testing::random_transformer;
using testing::same_bits;
using testing::TemporaryDirectory;

constexpr WeightFormat formats[] = {WeightFormat::bf16, WeightFormat::int8, WeightFormat::int4};

// A head size of its own, and sizes that are no whole groups: 35 is odd.
StackSpecification odd_config() {
  StackSpecification config = make_gpt_config(2, 5, 35, 8, 40);
  config.block.attention.head_size = 5;
  config.block.feed_forward.width = 33;
  return config;
}

// Logits (T, V) of some tokens.
Tensor<float> quantised_logits(const Transformer& transformer) {
  constexpr std::int32_t tokens[] = {3, 1, 39, 12, 7};
  return testing::full_logits(transformer, tokens);
}

TEST(QuantisedFiles, ComputeWhatQuantisingOnLoadComputes) {
  for (const bool tied : {true, false}) {
    for (const bool bias : {true, false}) {
      StackSpecification config = odd_config();
      config.tied_unembedding = tied;
      set_biases(config, bias ? Biases::all : Biases::none);
      for (const WeightFormat format : formats) {
        SCOPED_TRACE(kernels::weight_format_name(format));
        const TemporaryDirectory directory;
        Transformer transformer = random_transformer(config, 3);
        save_transformer(transformer, directory.path(), {}, format);
        const Transformer loaded = load_transformer(StacksWanted::one, directory.path());
        EXPECT_EQ(loaded.specification(), config);
        EXPECT_EQ(loaded.parameters().prepared_format(), format);
        const Tensor<float> whole = quantised_logits(transformer);
        transformer.parameters().prepare(format);
        EXPECT_TRUE(same_bits(quantised_logits(loaded), quantised_logits(transformer)));
        EXPECT_FALSE(same_bits(quantised_logits(loaded), whole)) << "nothing was quantised";
      }
    }
  }
}

// The embedding in the format too, and products in f32: a small model in little space, whose
// gradients and edits are those of any other.
TEST(QuantisedFiles, MayRoundTheEmbeddingAndComputeInF32) {
  for (const bool tied : {true, false}) {
    StackSpecification config = odd_config();
    config.tied_unembedding = tied;
    const Transformer transformer = random_transformer(config, 3);
    for (const WeightFormat format : formats) {
      SCOPED_TRACE(kernels::weight_format_name(format));
      const TemporaryDirectory plain, directory, again;
      SavedAs as = format;
      save_transformer(transformer, plain.path(), {}, as);
      as.embedding = SavedAs::Embedding::rounded;
      as.arithmetic = SavedAs::Arithmetic::f32;
      save_transformer(transformer, directory.path(), {}, as);
      EXPECT_LT(std::filesystem::file_size(directory.path() / weights_file_name),
                std::filesystem::file_size(plain.path() / weights_file_name));
      const Transformer loaded = load_transformer(StacksWanted::one, directory.path());
      EXPECT_EQ(loaded.parameters().prepared_format(), WeightFormat::f32);
      // The same matrices as ever, and an embedding that is as near to its own.
      const Transformer matrices = load_transformer(StacksWanted::one, plain.path());
      const auto up = testing::gpt2_parameter("h.0.mlp.c_fc.weight");
      EXPECT_TRUE(std::ranges::equal(loaded.parameters().tensor(up).span(),
                                     matrices.parameters().tensor(up).span()));
      const std::span<const float> before = transformer.parameters().token_embedding().span();
      const std::span<const float> after = loaded.parameters().token_embedding().span();
      EXPECT_FALSE(std::ranges::equal(before, after)) << "nothing was rounded";
      const float largest = std::abs(
          *std::ranges::max_element(before, {}, [](float weight) { return std::abs(weight); }));
      // Half a step of a group: of int4's 7 integers, which is the coarsest.
      for (std::size_t i = 0; i < before.size(); ++i) {
        ASSERT_NEAR(after[i], before[i], 0.51F * largest / 7) << i;
      }
      // Positions are stored in bf16 whatever the format.
      const auto positions = [](const Transformer& of) {
        return of.parameters().tensor(testing::gpt2_parameter("wpe.weight")).span();
      };
      EXPECT_FALSE(std::ranges::equal(positions(transformer), positions(loaded)));
      EXPECT_TRUE(std::ranges::equal(
          positions(transformer), positions(loaded),
          [](float whole, float rounded) { return bf16_to_f32(f32_to_bf16(whole)) == rounded; }));
      EXPECT_TRUE(std::ranges::equal(positions(transformer), positions(matrices)));
      // Products are of the stored numbers in f32.
      Transformer in_f32({.stacks = {config}});
      std::ranges::copy(loaded.parameters().all(), in_f32.parameters().all().begin());
      EXPECT_TRUE(same_bits(quantised_logits(loaded), quantised_logits(in_f32)));
      save_transformer(loaded, again.path(), {}, as);
      for (const char* file : {weights_file_name, "config.json"}) {
        EXPECT_EQ(read_text_file(again.path() / file), read_text_file(directory.path() / file));
      }
    }
  }
}

TEST(QuantisedFiles, SayingOtherwiseOfTheEmbeddingOrProductsIsRefused) {
  const TemporaryDirectory directory;
  SavedAs as = WeightFormat::int8;
  as.embedding = SavedAs::Embedding::rounded;
  save_transformer(random_transformer(odd_config(), 3), directory.path(), {}, as);
  const Json config = Json::parse(read_text_file(directory.path() / "config.json"));
  for (const auto& [field, value] : std::vector<std::pair<std::string, Json>>{
           {"embedding", "int4"}, {"embedding", true}, {"arithmetic", "int8"}, {"arithmetic", 5}}) {
    SCOPED_TRACE(field);
    Json wrong = config;
    wrong["heed"][field] = value;
    write_text_file(directory.path() / "config.json", wrong.dump());
    expect_error(
        ErrorCode::corrupt_data, [&] { load_transformer(StacksWanted::one, directory.path()); },
        field);
  }
  // The tensors contradict a config that does not say so.
  Json silent = config;
  silent["heed"].erase("embedding");
  write_text_file(directory.path() / "config.json", silent.dump());
  expect_error(
      ErrorCode::corrupt_data, [&] { load_transformer(StacksWanted::one, directory.path()); },
      "wte.weight");
}

TEST(QuantisedFiles, LoadTheDequantisedMatrices) {
  const Transformer transformer = random_transformer(odd_config(), 3);
  const TemporaryDirectory directory, again;
  save_transformer(transformer, directory.path(), {}, WeightFormat::int8);
  Transformer loaded = load_transformer(StacksWanted::one, directory.path());
  const View<const float> before =
      transformer.parameters().tensor(testing::gpt2_parameter("h.0.mlp.c_fc.weight"));
  const View<const float> after =
      loaded.parameters().tensor(testing::gpt2_parameter("h.0.mlp.c_fc.weight"));
  for (std::int64_t i = 0; i < before.size(); ++i) {
    // half a step of a group whose largest is about four deviations of 0.08
    EXPECT_NEAR(after.data()[i], before.data()[i], 0.5 * 0.4 / 127);
  }
  // Saved once more in the same format, every byte is the same.
  save_transformer(loaded, again.path(), {}, WeightFormat::int8);
  EXPECT_EQ(read_text_file(again.path() / weights_file_name),
            read_text_file(directory.path() / weights_file_name));
}

TEST(QuantisedFiles, FollowTheDocumentedLayout) {
  Transformer transformer = random_transformer(odd_config(), 3);
  // Row 0 of a (33, 35) matrix: a group of 32 with the integers 7, 3.5 -> 4 and -7, and one of 3.
  const View<float> matrix =
      transformer.parameters().tensor(testing::gpt2_parameter("h.1.mlp.c_fc.weight"));
  for (std::int64_t i = 0; i < 35; ++i) matrix(0, i) = 0.0F;
  matrix(0, 0) = 3.5F;
  matrix(0, 1) = -3.5F;
  matrix(0, 2) = 0.76F;
  matrix(0, 34) = 14.0F;
  const TemporaryDirectory directory;
  save_transformer(transformer, directory.path(), {}, WeightFormat::int4);
  const auto file = SafetensorsFile::open(directory.path() / weights_file_name);
  EXPECT_EQ(file.find("h.1.mlp.c_fc.weight"), nullptr);
  const TensorEntry* integers = file.find("h.1.mlp.c_fc.weight.int4");
  const TensorEntry* scales = file.find("h.1.mlp.c_fc.weight.scales");
  ASSERT_NE(integers, nullptr);
  ASSERT_NE(scales, nullptr);
  EXPECT_EQ(integers->dtype, DType::u8);
  EXPECT_EQ(integers->shape, (Shape{33, 18}));
  EXPECT_EQ(scales->dtype, DType::bf16);
  EXPECT_EQ(scales->shape, (Shape{33, 2}));
  EXPECT_EQ(integers->bytes[0], std::byte{0x1F});   // 7 + 8, and −7 + 8 in the high half
  EXPECT_EQ(integers->bytes[1], std::byte{0x8A});   // 0.76 / 0.5 is 2
  EXPECT_EQ(integers->bytes[17], std::byte{0x8F});  // the last input, and nothing after it
  std::uint16_t bits[2];
  std::memcpy(bits, scales->bytes.data(), sizeof(bits));
  EXPECT_EQ(bf16_to_f32(bits[0]), 0.5F);
  EXPECT_EQ(bf16_to_f32(bits[1]), 2.0F);
  EXPECT_EQ(file.find("wte.weight")->dtype, DType::f32);
}

// 3.4e38 is an f32, and rounds to infinity in bf16; as the largest of a group of integers, it stays
// finite.
TEST(QuantisedFiles, HoldNoWeightThatRoundsToInfinity) {
  for (const bool tied : {false, true}) {
    StackSpecification config = odd_config();
    config.tied_unembedding = tied;
    Transformer transformer = random_transformer(config, 3);
    const char* const name = tied ? "wte.weight" : "h.1.mlp.c_proj.weight";
    float& weight = transformer.parameters().tensor(testing::gpt2_parameter(name)).data()[7];
    const TemporaryDirectory directory;
    weight = 3.4e38F;
    expect_error(
        ErrorCode::unsupported,
        [&] { save_transformer(transformer, directory / "out", {}, WeightFormat::bf16); },
        std::string("'") + name + "'", "3.4e+38", "bf16");
    EXPECT_FALSE(std::filesystem::exists(directory / "out"));
    expect_error(
        ErrorCode::unsupported, [&] { transformer.parameters().prepare(WeightFormat::bf16); },
        "3.4e+38");
    for (const WeightFormat format : {WeightFormat::int8, WeightFormat::int4, WeightFormat::f32}) {
      const std::string out(kernels::weight_format_name(format));
      save_transformer(transformer, directory / out, {}, format);
      EXPECT_EQ(load_transformer(StacksWanted::one, directory / out).parameters().prepared_format(),
                format);
    }
    weight = -3.38e38F;  // below the largest of bf16, 3.39e38
    save_transformer(transformer, directory / "out", {}, WeightFormat::bf16);
    EXPECT_EQ(load_transformer(StacksWanted::one, directory / "out").parameters().prepared_format(),
              WeightFormat::bf16);
  }
}

// A file saved in int8 whose tensors are changed before they are written again.
class DamagedFiles : public ::testing::Test {
 protected:
  struct Stored {
    std::string name;
    DType dtype;
    Shape shape;
    std::vector<std::byte> bytes;
  };

  void save(WeightFormat format) {
    save_transformer(random_transformer(odd_config(), 3), directory_.path(), {}, format);
    const auto file = SafetensorsFile::open(directory_.path() / weights_file_name);
    tensors_.clear();
    for (const TensorEntry& entry : file.tensors()) {
      tensors_.push_back(
          {entry.name, entry.dtype, entry.shape, {entry.bytes.begin(), entry.bytes.end()}});
    }
  }

  Stored& stored(const std::string& name) {
    return *std::ranges::find(tensors_, name, &Stored::name);
  }

  template <class... Parts>
  void expect_refused(const Parts&... parts) {
    std::vector<OutgoingTensor> outgoing;
    for (const Stored& tensor : tensors_) {
      outgoing.push_back({.name = tensor.name,
                          .dtype = tensor.dtype,
                          .shape = tensor.shape,
                          .produce = [&tensor](const ByteSink& sink) { sink(tensor.bytes); }});
    }
    write_safetensors(directory_.path() / weights_file_name, outgoing);
    expect_error(
        ErrorCode::corrupt_data, [&] { load_transformer(StacksWanted::one, directory_.path()); },
        parts...);
  }

  TemporaryDirectory directory_;
  std::vector<Stored> tensors_;
};

TEST_F(DamagedFiles, AreRefusedWithWhatIsWrong) {
  const std::string integers = "h.0.mlp.c_fc.weight.int8", scales = "h.0.mlp.c_fc.weight.scales";
  save(WeightFormat::int8);
  stored(integers).bytes[40] = std::byte{0x80};
  expect_refused(integers, "group 0 of row 1 is 128", "expected 127");  // row 1 begins at 35
  save(WeightFormat::int8);
  for (int i = 0; i < 32; ++i) stored(integers).bytes[static_cast<std::size_t>(i)] = std::byte{5};
  expect_refused(integers, "group 0 of row 0 is 5");
  save(WeightFormat::int8);
  const std::uint16_t infinity = f32_to_bf16(INFINITY);
  std::memcpy(stored(scales).bytes.data() + 2, &infinity, 2);
  expect_refused(scales, "inf at (0, 1)");
  save(WeightFormat::int8);
  stored(scales).shape = {2, 33};
  expect_refused(scales, "BF16 (2, 33)", "BF16 (33, 2)");
  save(WeightFormat::int8);
  stored(integers).dtype = DType::u8;
  expect_refused(integers, "U8 (33, 35)", "I8 (33, 35)");
  save(WeightFormat::int8);
  std::erase_if(tensors_, [&](const Stored& tensor) { return tensor.name == scales; });
  expect_refused(scales, "is missing");
  save(WeightFormat::int4);
  stored("h.0.mlp.c_fc.weight.int4").bytes[0] &= std::byte{0xF0};
  expect_refused("h.0.mlp.c_fc.weight.int4", "group 0 of row 0 is 8", "expected 7");
  save(WeightFormat::int4);
  stored("h.0.mlp.c_fc.weight.int4").bytes[17] |= std::byte{0x10};  // 8 to 9: of 35 inputs none
  expect_refused("h.0.mlp.c_fc.weight.int4", "has 1 after the 35 inputs of row 0");
}

TEST_F(DamagedFiles, MustAgreeWithTheirConfig) {
  save(WeightFormat::int8);
  const std::filesystem::path config = directory_.path() / config_file_name;
  const std::string right = read_text_file(config);
  const auto with = [&](const std::string& dtype) {
    Json document = parse_json(right, "config");
    if (dtype.empty()) {
      document["heed"].erase("dtype");
    } else {
      document["heed"]["dtype"] = dtype;
    }
    write_text_file(config, document.dump());
  };
  with("");
  expect_refused("unexpected tensor", ".weight.scales");
  with("int4");
  expect_refused("unexpected tensor", ".int8");
  with("int3");
  expect_refused("'dtype' must be", "\"int3\"");
  with("f32");
  expect_refused("'dtype' must be", "\"f32\"");
}

}  // namespace
}  // namespace heed
