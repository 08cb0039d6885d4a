#include "formats/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <ranges>

#include "base/bf16.h"
#include "base/expect_error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "checkpoint/safetensors.h"
#include "support/gpt2_names.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::TemporaryDirectory;

// A tensor as it lies in a file.
struct StoredTensor {
  std::string name;
  Shape shape;
  std::vector<float> values;
};

StackSpecification file_config() { return make_gpt_config(2, 2, 12, 8, 11); }

StackSpecification bias_free_config() {
  StackSpecification config = file_config();
  set_biases(config, Biases::none);
  config.tied_unembedding = false;
  config.block.attention.head_size = 5;
  return config;
}

// Gains and biases differ too, so that mixing them up shows.
Transformer distinct_transformer(const StackSpecification& config, std::uint64_t seed = 3) {
  Transformer transformer({.stacks = {config}});
  transformer.parameters().initialize(seed);
  for (const Parameter& parameter : transformer.parameters().list()) {
    float value = 0.5F;
    for (float& element : transformer.parameters().tensor(parameter.id).span()) {
      element += value += 0.01F;
    }
  }
  return transformer;
}

std::vector<StoredTensor> stored_tensors(const std::filesystem::path& directory) {
  const auto file = SafetensorsFile::open(directory / weights_file_name);
  std::vector<StoredTensor> tensors;
  for (const TensorEntry& entry : file.tensors()) {
    Tensor<float> values(entry.shape);
    read_as_f32(entry, values);
    tensors.push_back({entry.name, entry.shape, {values.span().begin(), values.span().end()}});
  }
  return tensors;
}

// The half that keeps the leading bits of a finite number; zero below 2^-14.
std::uint16_t truncated_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude < 0x38800000U) return sign;
  return sign | static_cast<std::uint16_t>((magnitude - 0x38000000U) >> 13);
}

OutgoingTensor outgoing_as(const StoredTensor& tensor, DType dtype) {
  return {.name = tensor.name,
          .dtype = dtype,
          .shape = tensor.shape,
          .produce = [&tensor, dtype](const ByteSink& sink) {
            if (dtype == DType::f32) return sink(std::as_bytes(std::span(tensor.values)));
            std::vector<std::uint16_t> halves;
            for (const float value : tensor.values) {
              halves.push_back(dtype == DType::f16 ? truncated_to_f16(value) : f32_to_bf16(value));
            }
            sink(std::as_bytes(std::span(halves)));
          }};
}

void write_tensors(const std::filesystem::path& file, const std::vector<StoredTensor>& tensors,
                   DType dtype = DType::f32) {
  std::vector<OutgoingTensor> out;
  for (const StoredTensor& tensor : tensors) out.push_back(outgoing_as(tensor, dtype));
  write_safetensors(file, out);
}

// A saved model whose file a test may change before it is read.
class ModelFiles : public ::testing::Test {
 protected:
  void save(const Transformer& transformer) {
    save_transformer(transformer, directory_.path());
    tensors_ = stored_tensors(directory_.path());
  }

  StoredTensor& stored(const std::string& name) {
    const auto found = std::ranges::find(tensors_, name, &StoredTensor::name);
    require(found != tensors_.end(), ErrorCode::not_found, "no stored '{}'", name);
    return *found;
  }

  void rewrite(DType dtype = DType::f32) {
    write_tensors(directory_ / weights_file_name, tensors_, dtype);
  }

  Transformer load() { return load_transformer(StacksWanted::one, directory_.path()); }

  template <class... Parts>
  void expect_refused(const Parts&... parts) {
    expect_error(
        ErrorCode::corrupt_data, [&] { load(); }, parts...);
  }

  TemporaryDirectory directory_;
  std::vector<StoredTensor> tensors_;
};

void expect_same(const Transformer& actual, const Transformer& expected) {
  EXPECT_EQ(actual.specification(), expected.specification());
  EXPECT_TRUE(std::ranges::equal(actual.parameters().all(), expected.parameters().all()));
}

TEST_F(ModelFiles, AreReadAsTheyWereWritten) {
  for (const StackSpecification& config : {file_config(), bias_free_config()}) {
    const Transformer transformer = distinct_transformer(config);
    save(transformer);
    expect_same(load(), transformer);
  }
}

TEST_F(ModelFiles, HoldWhatHuggingFaceExpects) {
  const Transformer transformer = distinct_transformer(file_config());
  save(transformer);
  std::vector<std::string> names;
  for (const StoredTensor& tensor : tensors_) names.push_back(tensor.name);
  EXPECT_EQ(names.size(), 2 + 2 * 12 + 2U);
  EXPECT_THAT(names, ::testing::Contains("h.1.mlp.c_proj.bias"));
  EXPECT_THAT(names, ::testing::Not(::testing::Contains("lm_head.weight")));
  // Conv1D: [in, out], the transpose of what is in memory.
  const StoredTensor& up = stored("h.0.mlp.c_fc.weight");
  EXPECT_EQ(up.shape, (Shape{12, 48}));
  EXPECT_EQ(up.values[1],
            transformer.parameters().tensor(testing::gpt2_parameter("h.0.mlp.c_fc.weight"))(1, 0));
  EXPECT_EQ(stored("wte.weight").shape, (Shape{11, 12}));
}

TEST_F(ModelFiles, AreReadWithPrefixedNamesAndMaskBuffers) {
  const Transformer transformer = distinct_transformer(file_config());
  save(transformer);
  for (StoredTensor& tensor : tensors_) tensor.name = "transformer." + tensor.name;
  tensors_.push_back({"transformer.h.0.attn.bias", {1, 1, 8, 8}, std::vector<float>(64, 1.0F)});
  tensors_.push_back({"transformer.h.0.attn.masked_bias", {1}, {-1e4F}});
  tensors_.push_back(
      {"lm_head.weight", {11, 12}, stored("transformer.wte.weight").values});  // a copy of the tied
  rewrite();
  expect_same(load(), transformer);
}

TEST_F(ModelFiles, AreReadInHalfPrecision) {
  const Transformer transformer = distinct_transformer(file_config());
  for (const DType dtype : {DType::f16, DType::bf16}) {
    save(transformer);
    rewrite(dtype);
    Transformer expected = distinct_transformer(file_config());
    for (float& value : expected.parameters().all()) {
      value = dtype == DType::f16 ? f16_to_f32(truncated_to_f16(value))
                                  : bf16_to_f32(f32_to_bf16(value));
    }
    expect_same(load(), expected);
  }
}

TEST_F(ModelFiles, AreReadInShards) {
  const Transformer transformer = distinct_transformer(file_config());
  save(transformer);
  std::filesystem::remove(directory_ / weights_file_name);
  const auto middle = tensors_.begin() + 9;
  OrderedJson index;
  const auto write_shard = [&](const std::string& name, auto begin, auto end) {
    write_tensors(directory_ / name, {begin, end});
    for (auto tensor = begin; tensor != end; ++tensor) index["weight_map"][tensor->name] = name;
  };
  write_shard("model-00001-of-00002.safetensors", tensors_.begin(), middle);
  write_shard("model-00002-of-00002.safetensors", middle, tensors_.end());
  write_text_file(directory_ / "model.safetensors.index.json", index.dump());
  expect_same(load(), transformer);
}

TEST_F(ModelFiles, MustHoldEveryTensorOfTheConfig) {
  save(distinct_transformer(file_config()));
  std::erase_if(tensors_, [](const auto& tensor) { return tensor.name == "h.1.ln_2.bias"; });
  rewrite();
  expect_refused("'h.1.ln_2.bias' is missing", weights_file_name);
}

TEST_F(ModelFiles, MustHoldNoOther) {
  save(distinct_transformer(file_config()));
  tensors_.push_back({"h.2.ln_1.weight", {12}, std::vector<float>(12)});
  rewrite();
  expect_refused("'h.2.ln_1.weight'", "2 layers");
}

TEST_F(ModelFiles, MustHaveTheShapesOfTheConfig) {
  save(distinct_transformer(file_config()));
  stored("h.0.mlp.c_fc.weight").shape = {48, 12};  // as nn.Linear would have it
  rewrite();
  expect_refused("'h.0.mlp.c_fc.weight' has shape (48, 12)", "(12, 48)");
  stored("h.0.mlp.c_fc.weight").shape = {12, 48};
  stored("wpe.weight").shape = {4, 12};
  stored("wpe.weight").values.resize(48);
  rewrite();
  expect_refused("'wpe.weight' has shape (4, 12)");
}

// A small file whose config asks for a terabyte must not make heed ask for it too.
TEST_F(ModelFiles, AreRefusedBeforeMemoryIsTakenForThem) {
  save(distinct_transformer(file_config()));
  StackSpecification huge = file_config();
  huge.vocabulary_size = huge.channels = 1 << 20;
  huge.block.attention.head_size = 1 << 15;
  write_text_file(directory_ / config_file_name, stack_config_to_json(huge).dump());
  expect_refused("'wte.weight' has shape (11, 12)");
}

TEST_F(ModelFiles, MayNotContradictATiedHead) {
  save(distinct_transformer(file_config()));
  tensors_.push_back({"lm_head.weight", {11, 12}, stored("wte.weight").values});
  tensors_.back().values[5] += 1;
  rewrite();
  expect_refused("'lm_head.weight' differs from wte.weight", "tie_word_embeddings");
  tensors_.back().shape = {12, 11};
  rewrite();
  expect_refused("'lm_head.weight' has shape (12, 11)");
}

TEST_F(ModelFiles, NeedAHeadThatIsNotTied) {
  StackSpecification config = file_config();
  config.tied_unembedding = false;
  save(distinct_transformer(config));
  std::erase_if(tensors_, [](const auto& tensor) { return tensor.name == "lm_head.weight"; });
  rewrite();
  expect_refused("'lm_head.weight' is missing");
}

TEST_F(ModelFiles, HoldZerosForBiasesThatAModelLacks) {
  save(distinct_transformer(bias_free_config()));
  const auto is_zero = [](float value) { return value == 0.0F; };
  EXPECT_TRUE(std::ranges::all_of(stored("h.1.mlp.c_fc.bias").values, is_zero));
  EXPECT_EQ(stored("h.0.attn.c_attn.bias").shape, (Shape{30}));
  stored("ln_f.bias").values[2] = 0.25F;
  rewrite();
  expect_refused("'ln_f.bias' is not zero", "no biases");
  std::erase_if(tensors_, [](const auto& tensor) { return tensor.name.ends_with(".bias"); });
  rewrite();
  expect_same(load(), distinct_transformer(bias_free_config()));
}

TEST_F(ModelFiles, AreNamedWhenTheyAreNotThere) {
  expect_error(
      ErrorCode::not_found, [&] { load_transformer(StacksWanted::one, directory_ / "none"); },
      (directory_ / "none").string());
  expect_error(
      ErrorCode::not_found, [&] { load(); }, config_file_name);
  save(distinct_transformer(file_config()));
  std::filesystem::remove(directory_ / weights_file_name);
  expect_error(
      ErrorCode::not_found, [&] { load(); }, weights_file_name);
}

TEST_F(ModelFiles, MayBeNamedByTheWeights) {
  const Transformer transformer = distinct_transformer(file_config());
  save(transformer);
  expect_same(load_transformer(StacksWanted::one, directory_ / weights_file_name), transformer);
  std::filesystem::rename(directory_ / weights_file_name, directory_ / "other.safetensors");
  expect_same(load_transformer(StacksWanted::one, directory_ / "other.safetensors"), transformer);
  EXPECT_EQ(model_directory(directory_ / "other.safetensors"), directory_.path());
  expect_error(
      ErrorCode::unsupported,
      [&] { load_transformer(StacksWanted::one, directory_ / config_file_name); }, config_file_name,
      ".safetensors");
  std::filesystem::remove(directory_ / config_file_name);
  expect_error(
      ErrorCode::not_found,
      [&] { load_transformer(StacksWanted::one, directory_ / "other.safetensors"); },
      "other.safetensors", "no config.json");
}

// For its lifetime, files of this process cannot grow beyond `bytes`: writing more fails as on a
// full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    previous_handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &previous_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = previous_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &previous_);
    ::signal(SIGXFSZ, previous_handler_);
  }

 private:
  rlimit previous_{};
  void (*previous_handler_)(int) = nullptr;
};

TEST_F(ModelFiles, StayAsTheyWereWhenSavingFailsMidway) {
  const Transformer old_model = distinct_transformer(file_config());
  save(old_model);
  const auto size = std::filesystem::file_size(directory_ / weights_file_name);
  const auto entries = directory_.entries();
  {
    const FileSizeLimit limit(size / 2);
    expect_error(
        ErrorCode::input_output,
        [&] { save_transformer(distinct_transformer(file_config(), 99), directory_.path()); },
        weights_file_name);
  }
  EXPECT_EQ(directory_.entries(), entries);
  expect_same(load(), old_model);
}

TEST_F(ModelFiles, LeaveNoDirectoryWhenSavingFails) {
  {
    const FileSizeLimit limit(1000);
    expect_error(
        ErrorCode::input_output,
        [&] {
          save_transformer(distinct_transformer(file_config()),
                           directory_.path() / "new" / "model");
        },
        weights_file_name);
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "new"));
}

TEST_F(ModelFiles, StayAsTheyWereWhenACompanionDoesNotFit) {
  const Transformer old_model = distinct_transformer(file_config());
  save(old_model);
  const auto size = std::filesystem::file_size(directory_ / weights_file_name);
  const auto entries = directory_.entries();
  {
    const FileSizeLimit limit(size + 1024);
    expect_error(
        ErrorCode::input_output,
        [&] {
          save_transformer(distinct_transformer(file_config(), 99), directory_.path(),
                           {{{"tokenizer.json", std::string(2 * size, ' ')}}});
        },
        "tokenizer.json");
  }
  EXPECT_EQ(directory_.entries(), entries);
  expect_same(load(), old_model);
}

// A directory that cannot be replaced stands in for the end of the process between two renamings.
TEST_F(ModelFiles, OfTwoModelsAreNeverLoadedTogether) {
  save_transformer(distinct_transformer(file_config()), directory_.path(),
                   {{{"companion", "old"}}});
  EXPECT_EQ(read_text_file(directory_ / "companion"), "old");
  std::filesystem::remove(directory_ / "companion");
  make_directory(directory_.path() / "companion" / "full");
  StackSpecification other = file_config();
  other.block.attention.query_heads = other.block.attention.key_value_heads =
      4;  // of the same shapes, so that nothing else tells them apart
  other.block.attention.head_size = 3;
  expect_error(
      ErrorCode::input_output,
      [&] {
        save_transformer(distinct_transformer(other), directory_.path(), {{{"companion", "new"}}});
      },
      "companion");
  expect_error(
      ErrorCode::not_found, [&] { load(); }, config_file_name);
  std::filesystem::remove_all(directory_ / "companion");
  save_transformer(distinct_transformer(other), directory_.path(), {{{"companion", "new"}}});
  expect_same(load(), distinct_transformer(other));
  EXPECT_EQ(directory_.entries(), 3U);
}

}  // namespace
}  // namespace heed
