// Models whose matrices stay in the blocks of their GGUF file: the logits of the restored weights,
// in the memory of the blocks.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/environment_variable.h"
#include "base/expect_error.h"
#include "base/random.h"
#include "checkpoint/block_packing.h"
#include "checkpoint/gguf_writer.h"
#include "formats/model_files.h"
#include "generate/random_transformer.h"
#include "support/small_model.h"

namespace heed {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;

constexpr BlockType all_block_types[] = {
    BlockType::q8_0, BlockType::q4_0, BlockType::q4_1, BlockType::q5_0, BlockType::q5_1,
    BlockType::q2_k, BlockType::q3_k, BlockType::q4_k, BlockType::q5_k, BlockType::q6_k};

// Two layers of 4 heads of 64, in LLaMA and Qwen 2 with 2 heads of keys: blocks are of 256 inputs.
constexpr std::int64_t block_channels = 256, block_width = 512, block_vocabulary = 70;

// Random bytes are random integers, with factors that leave weights about 0.04 large.
std::vector<std::byte> random_blocks(BlockType type, std::int64_t numbers, RandomStream& random) {
  const BlockLayout layout = block_layout(type);
  std::vector<std::byte> bytes(static_cast<std::size_t>(numbers / layout.values * layout.bytes));
  if (can_pack(type)) {
    std::vector<float> values(static_cast<std::size_t>(numbers));
    for (float& value : values) value = static_cast<float>(0.04 * random.normal());
    pack_blocks(type, values, bytes);
    return bytes;
  }
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  struct Factor {
    std::size_t at;
    std::uint16_t bits;  // of f16
  };
  const std::vector<Factor> factors =
      type == BlockType::q4_1   ? std::vector<Factor>{{0, 0x2000}, {2, 0xAC00}}
      : type == BlockType::q2_k ? std::vector<Factor>{{80, 0x1800}, {82, 0x1A00}}
                                : std::vector<Factor>{{108, 0x1400}};
  for (std::size_t block = 0; block < bytes.size(); block += layout.bytes) {
    for (const Factor& factor : factors) {
      std::memcpy(bytes.data() + block + factor.at, &factor.bits, sizeof(factor.bits));
    }
  }
  return bytes;
}

struct BlockFamily {
  std::string name;
  bool is_gpt2 = false;
  bool has_query_bias = false;
};

// Writes a model of random weights. `type_of` says how a matrix is stored.
class BlockFile {
 public:
  using TypeOf = std::function<BlockType(const std::string& name)>;

  BlockFile(const BlockFamily& family, fs::path path, TypeOf type_of)
      : path_(std::move(path)), type_of_(std::move(type_of)) {
    GgufMetadata metadata;
    metadata.add("general.architecture", std::string_view(family.name));
    const auto add = [&](const std::string& key, auto value) {
      metadata.add(family.name + "." + key, value);
    };
    add("context_length", std::uint32_t{64});
    add("embedding_length", static_cast<std::uint32_t>(block_channels));
    add("block_count", std::uint32_t{2});
    add("feed_forward_length", static_cast<std::uint32_t>(block_width));
    add("attention.head_count", std::uint32_t{4});
    if (family.is_gpt2) {
      add("attention.layer_norm_epsilon", 1e-5F);
    } else {
      add("attention.head_count_kv", std::uint32_t{2});
      add("attention.layer_norm_rms_epsilon", 1e-5F);
    }
    matrix("token_embd.weight", block_vocabulary, block_channels);
    if (family.is_gpt2) {
      numbers("position_embd.weight", {64, block_channels}, 0);
    } else {
      matrix("output.weight", block_vocabulary, block_channels);
    }
    for (int layer = 0; layer < 2; ++layer) block(family, "blk." + std::to_string(layer) + ".");
    norm(family, "output_norm");
    AtomicFile file(path_);
    write_gguf(file, metadata, tensors_);
    file.commit();
  }

  std::int64_t bytes_of(const std::string& part) const {
    std::int64_t sum = 0;
    for (const OutgoingBlocks& tensor : tensors_) {
      if (tensor.type == BlockType::f32 || !tensor.name.starts_with(part)) continue;
      const BlockLayout layout = block_layout(tensor.type);
      sum += tensor.shape.size() / layout.values * layout.bytes;
    }
    return sum;
  }

 private:
  void block(const BlockFamily& family, const std::string& blk) {
    norm(family, blk + "attn_norm");
    const auto linear = [&](const std::string& name, std::int64_t outputs, std::int64_t inputs,
                            bool has_bias) {
      matrix(blk + name + ".weight", outputs, inputs);
      if (has_bias) numbers(blk + name + ".bias", {outputs}, 0);
    };
    const bool has_biases = family.is_gpt2;
    if (family.is_gpt2) {
      linear("attn_qkv", 3 * block_channels, block_channels, true);
    } else {
      linear("attn_q", block_channels, block_channels, family.has_query_bias);
      linear("attn_k", block_channels / 2, block_channels, family.has_query_bias);
      linear("attn_v", block_channels / 2, block_channels, family.has_query_bias);
      linear("ffn_gate", block_width, block_channels, false);
    }
    linear("attn_output", block_channels, block_channels, has_biases);
    norm(family, blk + "ffn_norm");
    linear("ffn_up", block_width, block_channels, has_biases);
    linear("ffn_down", block_channels, block_width, has_biases);
  }

  void norm(const BlockFamily& family, const std::string& name) {
    numbers(name + ".weight", {block_channels}, 1);
    if (family.is_gpt2) numbers(name + ".bias", {block_channels}, 0);
  }

  void numbers(const std::string& name, const Shape& shape, float mean) {
    std::vector<float> values(static_cast<std::size_t>(shape.size()));
    for (float& value : values) value = mean + static_cast<float>(0.1 * random_.normal());
    const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
    add(name, BlockType::f32, shape, {bytes.begin(), bytes.end()});
  }

  void matrix(const std::string& name, std::int64_t outputs, std::int64_t inputs) {
    const BlockType type = type_of_(name);
    add(name, type, {outputs, inputs}, random_blocks(type, outputs * inputs, random_));
  }

  void add(const std::string& name, BlockType type, const Shape& shape,
           std::vector<std::byte> bytes) {
    tensors_.push_back(
        {.name = name, .type = type, .shape = shape, .produce = [bytes](const ByteSink& sink) {
           sink(bytes);
         }});
  }

  fs::path path_;
  TypeOf type_of_;
  RandomStream random_{90, 1};
  std::vector<OutgoingBlocks> tensors_;
};

const BlockFamily block_families[] = {
    {"gpt2", true, true}, {"llama", false, false}, {"qwen2", false, true}};

// The largest difference of logits, relative to their root mean square.
double logit_difference(const Transformer& left, const Transformer& right, std::int64_t count) {
  const auto tokens = testing::random_tokens(count, block_vocabulary, 3);
  const Tensor<float> a = testing::full_logits(left, tokens),
                      b = testing::full_logits(right, tokens);
  double largest = 0, squares = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
    squares += static_cast<double>(b[i]) * b[i];
  }
  return largest / std::sqrt(squares / static_cast<double>(b.size()));
}

struct IntegersRefused {
  IntegersRefused() { kernels::refuse_integers_for_long_rows(); }
  ~IntegersRefused() { kernels::allow_integers_for_long_rows(); }
};

class GgufBlocks : public ::testing::TestWithParam<std::tuple<BlockFamily, BlockType>> {
 protected:
  BlockFamily family() const { return std::get<0>(GetParam()); }
  BlockType type() const { return std::get<1>(GetParam()); }
  testing::ScratchDirectory scratch_;
  const fs::path path_ = scratch_.path() / "model.gguf";
};

// In f32 sums of up to 512 terms differ by their order alone: √512 · 2⁻²⁴ = 1.4e-6 of a product, of
// which 11 add up to 4.5e-6; 18 times that for the largest of 700 logits (3.2 deviations) and what
// norms and softmax amplify. Rows that are rounded to int8 are off by up to 1/254 of the largest of
// their 32 numbers, about 2.4 deviations: 2.4 / 254 / √3 = 0.0055 of a product's size, 0.018 in 11
// of them, 0.06 for the largest logit; twice that for what is a product of two rounded ones, and
// for gated activations, whose largest is further out.
TEST_P(GgufBlocks, GiveTheLogitsOfTheRestoredWeights) {
  const BlockFile file(family(), path_, [&](const std::string&) { return type(); });
  const Transformer blocks = load_transformer(StacksWanted::one, path_);
  Transformer restored = load_transformer(StacksWanted::one, path_);
  restored.parameters().prepare(kernels::WeightFormat::f32);
  ASSERT_TRUE(blocks.parameters().are_in_blocks());
  ASSERT_FALSE(restored.parameters().are_in_blocks());
  EXPECT_EQ(blocks.parameters().prepared_format(), find_weight_format(type()));
  {
    const IntegersRefused refused;
    EXPECT_LT(logit_difference(blocks, restored, 9), 8e-5);
    EXPECT_LT(logit_difference(blocks, restored, 40), 8e-5);
  }
  EXPECT_LT(logit_difference(blocks, restored, 9), 0.12);
  EXPECT_GT(logit_difference(blocks, restored, 9), 1e-5);  // blocks are multiplied, indeed
}

// Vectors and GPT-2's positions are f32 in memory, matrices have the bytes of the file; a token
// embedding that is no unembedding is read where the file is.
TEST_P(GgufBlocks, HaveTheMemoryOfTheFile) {
  const BlockFile file(family(), path_, [&](const std::string&) { return type(); });
  const Transformer model = load_transformer(StacksWanted::one, path_);
  const Parameters& parameters = model.parameters();
  std::int64_t numbers = 0;
  for (const Parameter& parameter : parameters.list()) {
    const bool is_matrix = is_linear(parameter.id.role) && parameter.id.part == Part::weight;
    const bool is_in_blocks = is_matrix || parameter.id.role == Role::token_embedding;
    EXPECT_EQ(parameters.is_in_blocks(parameter.id), is_in_blocks);
    if (!is_in_blocks) numbers += parameter.shape.size();
  }
  const std::int64_t kept = numbers * static_cast<std::int64_t>(sizeof(float));
  EXPECT_EQ(parameters.arena_bytes(), kept);
  // Panels have 32 outputs, so that 70 words fill 96. Scales of Q4_K and Q5_K are six bits in the
  // file, and a byte each in panels: 16 bytes for 12. Those of Q3_K are 16 for 12, too.
  const std::string table = family().is_gpt2 ? "token_embd" : "output.weight";
  const double padding = 1.0 + 26.0 / 70.0;
  const double bytes = static_cast<double>(file.bytes_of("blk.")) +
                       padding * static_cast<double>(file.bytes_of(table));
  const double unpacked_scales = type() == BlockType::q4_k   ? 148.0 / 144
                                 : type() == BlockType::q5_k ? 180.0 / 176
                                 : type() == BlockType::q3_k ? 114.0 / 110
                                                             : 1.0;
  EXPECT_NEAR(static_cast<double>(parameters.prepared_bytes()), bytes * unpacked_scales,
              1e-9 * bytes);
  const auto tokens = testing::random_tokens(20, block_vocabulary, 3);
  testing::full_logits(model, tokens);
  EXPECT_EQ(parameters.arena_bytes(), kept);  // a pass restores nothing
  const ParameterId down{.role = Role::down, .layer = 1};
  EXPECT_EQ(parameters.tensor(down).size(), block_width * block_channels);
  EXPECT_EQ(parameters.arena_bytes(), kept + 4 * block_width * block_channels);
}

INSTANTIATE_TEST_SUITE_P(Types, GgufBlocks,
                         ::testing::Combine(::testing::ValuesIn(block_families),
                                            ::testing::ValuesIn(all_block_types)),
                         [](const auto& each) {
                           return std::get<0>(each.param).name + "_" +
                                  std::string(block_layout(std::get<1>(each.param)).name);
                         });

// As Q4_K_M mixes them: query and key in one type, value in another. A type of single numbers
// leaves the joined matrix in f32.
TEST(GgufMixedBlocks, AreJoinedWherePanelsEnd) {
  const testing::ScratchDirectory scratch;
  const fs::path path = scratch.path() / "model.gguf";
  for (const BlockType of_value : {BlockType::q6_k, BlockType::f32}) {
    const BlockFile file(block_families[1], path, [&](const std::string& name) {
      return name.find("attn_v") != std::string::npos ? of_value : BlockType::q4_k;
    });
    const Transformer blocks = load_transformer(StacksWanted::one, path);
    Transformer restored = load_transformer(StacksWanted::one, path);
    restored.parameters().prepare(kernels::WeightFormat::f32);
    EXPECT_EQ(blocks.parameters().is_in_blocks({.role = Role::query_key_value, .layer = 0}),
              of_value == BlockType::q6_k);
    EXPECT_EQ(blocks.parameters().prepared_format(), kernels::WeightFormat::q4_k);
    const IntegersRefused refused;
    EXPECT_LT(logit_difference(blocks, restored, 9), 8e-5);
  }
}

// The file's blocks are overwritten in place, with its time of change kept, so that who read it
// again would notice.
TEST(GgufSharedBlocks, AreThoseOfTheFirstWhoReadTheFile) {
  const testing::ScratchDirectory scratch;
  const fs::path path = scratch.path() / "model.gguf";
  const BlockFile file(block_families[1], path, [](const std::string& name) {
    return name.find("attn_v") != std::string::npos ? BlockType::q6_k : BlockType::q4_k;
  });
  const testing::EnvironmentVariable share("HEED_SHARE", "1");
  const auto first = std::make_unique<Transformer>(load_transformer(StacksWanted::one, path));
  const auto time = fs::last_write_time(path);
  const std::string bytes = read_text_file(path);
  {
    std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
    const std::size_t matrix = bytes.size() - 4 * block_channels - 20000;
    stream.seekp(static_cast<std::streamoff>(matrix));
    stream << std::string(64, '\1');
  }
  fs::last_write_time(path, time);
  const Transformer second = load_transformer(StacksWanted::one, path);
  EXPECT_EQ(logit_difference(*first, second, 9), 0);
  {
    const testing::EnvironmentVariable alone("HEED_SHARE", nullptr);
    const Transformer other = load_transformer(StacksWanted::one, path);
    EXPECT_GT(logit_difference(*first, other, 9), 1e-4);
  }
  fs::last_write_time(path, time + std::chrono::seconds(1));  // another file, then
  const Transformer third = load_transformer(StacksWanted::one, path);
  EXPECT_GT(logit_difference(*first, third, 9), 1e-4);
}

TEST(GgufBadBlocks, AreRefusedByTensor) {
  const testing::ScratchDirectory scratch;
  const fs::path path = scratch.path() / "model.gguf";
  const BlockFile whole(block_families[1], path,
                        [](const std::string&) { return BlockType::q8_0; });
  std::string bytes = read_text_file(path);
  // The file ends with a norm of 1,024 bytes, before it the last matrix: its last block's scale.
  const std::size_t scale = bytes.size() - 4 * block_channels - 34;
  bytes[scale] = '\0';
  bytes[scale + 1] = '\x7C';
  write_text_file(path, bytes);
  expect_error(
      ErrorCode::corrupt_data, [&] { load_transformer(StacksWanted::one, path); },
      "'blk.1.ffn_down.weight': a block of q8_0 has a scale that is not finite");
}

}  // namespace
}  // namespace heed
