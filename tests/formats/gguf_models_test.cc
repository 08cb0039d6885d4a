// Models from GGUF files that another program wrote (oracle/write_gguf.py): the same parameters,
// description and logits as from the model directories that it wrote them of.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/files.h"
#include "base/json.h"
#include "formats/config_file.h"
#include "formats/gguf_families.h"
#include "formats/model_files.h"
#include "generate/random_transformer.h"
#include "support/small_model.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

constexpr const char* gguf_python = "/usr/bin/python3";

fs::path goldens() { return fs::path(HEED_SOURCE_DIR) / "tests/golden"; }

bool has_numpy() {
  static const bool found =
      std::system((std::string(gguf_python) + " -c 'import numpy' 2>/dev/null").c_str()) == 0;
  return found;
}

// A golden family's directory with fields of its config changed.
fs::path directory_of(const fs::path& golden, const Json& changes, const fs::path& to) {
  fs::create_directories(to);
  fs::copy_file(golden / "model.safetensors", to / "model.safetensors");
  Json config = read_config_document(golden / "config.json");
  config.update(changes);
  write_text_file(to / "config.json", config.dump());
  return to;
}

void write_by_python(const fs::path& directory, const fs::path& file, int parts = 1) {
  const fs::path script = fs::path(HEED_SOURCE_DIR) / "tests/formats/oracle/write_gguf.py";
  const std::string command = std::string(gguf_python) + " " + script.string() + " " +
                              directory.string() + " " + file.string() + " " +
                              std::to_string(parts);
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

void expect_same_parameters(const Transformer& left, const Transformer& right) {
  for (const Parameter& parameter : parameters_of(left.architecture())) {
    const auto values = left.parameters().tensor(parameter.id);
    const auto others = right.parameters().tensor(parameter.id);
    ASSERT_EQ(values.shape(), others.shape());
    EXPECT_TRUE(std::ranges::equal(values.span(), others.span())) << parameter_name(parameter.id);
  }
}

// Without what GGUF does not say: how a model is trained, and what a model is without a file's end.
Architecture described(Architecture architecture) {
  for (StackSpecification& stack : architecture.stacks) {
    stack.embedding_dropout = stack.attention_dropout = stack.residual_dropout = 0;
    stack.initial_deviation = 0;
  }
  architecture.decoder_start = architecture.padding = -1;
  return architecture;
}

struct GgufCase {
  std::string golden;
  Json changes = Json::object();

  friend std::ostream& operator<<(std::ostream& out, const GgufCase& each) {
    return out << each.golden;
  }
};

class GgufModels : public ::testing::TestWithParam<GgufCase> {
 protected:
  void SetUp() override {
    if (!has_numpy()) GTEST_SKIP() << "numpy writes the files";
  }
  testing::ScratchDirectory scratch_;
};

TEST_P(GgufModels, AreThoseOfTheirDirectories) {
  const fs::path directory =
      directory_of(goldens() / GetParam().golden, GetParam().changes, scratch_.path() / "model");
  const fs::path file = scratch_.path() / "model.gguf";
  write_by_python(directory, file);
  const StacksWanted stacks =
      is_encoder_decoder_directory(directory) ? StacksWanted::two : StacksWanted::one;
  const Transformer expected = load_transformer(stacks, directory);
  const Transformer read = load_transformer(stacks, file);
  EXPECT_EQ(is_encoder_decoder_directory(file), stacks == StacksWanted::two);
  EXPECT_EQ(described(read.architecture()), described(expected.architecture()));
  EXPECT_EQ(read_architecture(file), read.architecture());
  expect_same_parameters(read, expected);
  if (stacks == StacksWanted::two) return;
  const std::vector<std::int32_t> tokens = {5, 17, 3, 3, 0, 36, 11, 2, 9};
  const Tensor<float> logits = testing::full_logits(read, tokens);
  const Tensor<float> wanted = testing::full_logits(expected, tokens);
  EXPECT_TRUE(std::ranges::equal(logits.span(), wanted.span()));
}

INSTANTIATE_TEST_SUITE_P(
    Families, GgufModels,
    ::testing::Values(
        GgufCase{"families/gpt2"}, GgufCase{"families/llama"}, GgufCase{"families/llama_scaled"},
        GgufCase{"families/llama_yarn"},
        GgufCase{"families/llama_biased", {{"hidden_act", "silu"}}}, GgufCase{"families/mistral"},
        GgufCase{"families/qwen2"}, GgufCase{"families/qwen3"},
        GgufCase{"families/starcoder2", {{"rope_theta", 1e6}}},
        GgufCase{"families/starcoder2_windows", {{"rope_theta", 1e6}}}, GgufCase{"families/neox"},
        GgufCase{"families/neox_sequential"}, GgufCase{"families/olmo2"}, GgufCase{"families/phi3"},
        GgufCase{"families/gemma2", {{"query_pre_attn_scalar", 12}}},
        GgufCase{"families/gemma3", {{"sliding_window_pattern", 6}, {"torch_dtype", "float32"}}},
        GgufCase{"families/falcon"}, GgufCase{"families/falcon_new"},
        GgufCase{"pairs/t5", {{"relative_attention_max_distance", 128}}},
        GgufCase{"pairs/t5_gated"}));

// An encoder without the head that its directory has.
TEST(GgufBert, GivesTheHiddenStatesOfItsDirectory) {
  if (!has_numpy()) GTEST_SKIP() << "numpy writes the files";
  const testing::ScratchDirectory scratch;
  const fs::path directory = goldens() / "pairs/bert", file = scratch.path() / "bert.gguf";
  write_by_python(directory, file);
  const Transformer expected = load_transformer(StacksWanted::one, directory);
  const Transformer read = load_transformer(StacksWanted::one, file);
  EXPECT_EQ(described(read.architecture()), described(gguf_architecture(expected.architecture())));
  EXPECT_FALSE(read.specification().has_unembedding);
  for (const Parameter& parameter : parameters_of(read.architecture())) {
    EXPECT_TRUE(std::ranges::equal(read.parameters().tensor(parameter.id).span(),
                                   expected.parameters().tensor(parameter.id).span()))
        << parameter_name(parameter.id);
  }
  const std::vector<std::int32_t> tokens = {5, 17, 3, 3, 0, 36, 11, 2, 9};
  EXPECT_TRUE(std::ranges::equal(testing::last_states(read, tokens).span(),
                                 testing::last_states(expected, tokens).span()));
}

TEST(GgufParts, AreOneModelFromEachOfThem) {
  if (!has_numpy()) GTEST_SKIP() << "numpy writes the files";
  const testing::ScratchDirectory scratch;
  const fs::path directory = goldens() / "families/llama";
  write_by_python(directory, scratch.path() / "model.gguf", 3);
  const Transformer expected = load_transformer(StacksWanted::one, directory);
  for (const char* part : {"model-00001-of-00003.gguf", "model-00003-of-00003.gguf"}) {
    expect_same_parameters(load_transformer(StacksWanted::one, scratch.path() / part), expected);
  }
}

}  // namespace
}  // namespace heed
