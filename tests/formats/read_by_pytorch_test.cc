// The other direction of golden_test.cc: PyTorch reads what heed wrote, and computes the same.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/files.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "formats/model_files.h"
#include "generate/random_transformer.h"
#include "support/gpt2_names.h"

namespace heed {
namespace {

constexpr const char* python = "/usr/bin/python3";

struct Outcome {
  int status = 0;
  std::string output;
};

Outcome run(const std::string& command) {
  Outcome outcome;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) {
    outcome.output.append(buffer, count);
  }
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

// What `heed predict --json --full --all-positions` writes, as far as the script reads it.
std::string logits_document(const Transformer& transformer,
                            const std::vector<std::int32_t>& tokens) {
  const Tensor<float> logits = testing::full_logits(transformer, tokens);
  Json rows = Json::array();
  for (std::int64_t t = 0; t < logits.shape()[0]; ++t) {
    const auto row = logits.view()[t].span();
    rows.push_back(std::vector<float>(row.begin(), row.end()));
  }
  return Json{{"tokens", tokens}, {"logits", rows}}.dump();
}

class ReadByPyTorch : public ::testing::Test {
 protected:
  // Writes a model and its logits, and has the script compare them.
  Outcome compare(const Transformer& transformer) {
    save_transformer(transformer, directory_.path());
    write_text_file(directory_ / "logits.json",
                    logits_document(transformer, {5, 17, 3, 3, 0, 36, 11}));
    return compare_again();
  }

  Outcome compare_again() const {
    const auto quoted_path = [](const std::filesystem::path& path) {
      return "'" + path.string() + "'";
    };
    return run(
        std::string(python) + " -B " +
        quoted_path(std::filesystem::path(HEED_SOURCE_DIR) / "tests/golden/read_heed_model.py") +
        " " + quoted_path(directory_.path()) + " " + quoted_path(directory_ / "logits.json"));
  }

  void SetUp() override {
    if (!std::filesystem::exists(python)) GTEST_SKIP() << "there is no " << python;
    if (run(std::string(python) + " -c 'import torch, numpy'").status != 0) {
      GTEST_SKIP() << python << " cannot import torch and numpy";
    }
  }

  testing::TemporaryDirectory directory_;
};

TEST_F(ReadByPyTorch, GivesTheSameLogits) {
  StackSpecification config = make_gpt_config(3, 4, 32, 24, 61);
  Outcome outcome = compare(testing::random_transformer(config));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  RecordProperty("like_gpt2", outcome.output);

  config.block.feed_forward.activation = Activation::gelu_erf;
  config.block.attention.head_size = 10;
  config.block.feed_forward.width = 56;
  set_biases(config, Biases::none);
  config.tied_unembedding = false;
  outcome = compare(testing::random_transformer(config));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  RecordProperty("unlike_gpt2", outcome.output);
}

TEST_F(ReadByPyTorch, NoticesADifference) {
  Transformer transformer = testing::random_transformer(make_gpt_config(2, 4, 32, 24, 61));
  ASSERT_EQ(compare(transformer).status, 0);
  transformer.parameters().tensor(testing::gpt2_parameter("h.1.attn.c_proj.weight"))(3, 4) += 0.1F;
  save_transformer(transformer, directory_.path());
  EXPECT_EQ(compare_again().status, 1);
}

}  // namespace
}  // namespace heed
