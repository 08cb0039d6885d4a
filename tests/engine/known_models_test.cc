// The table of models that the page offers to download: what their configs imply.
#include "engine/known_models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "formats/config_file.h"
#include "formats/format.h"
#include "model/parameter_count.h"
#include "model/presets.h"

namespace heed {
namespace {

// Facts of the published files: the fields of config.json that say a model's shape, the bytes of a
// number, and those of the buffers that the file holds beside the parameters.
struct PublishedFacts {
  std::string config;
  std::int64_t bytes_each = 0;
  std::int64_t buffer_bytes = 0;
};

const std::map<std::string, PublishedFacts, std::less<>> facts{
    // The causal mask of each block, (1, 1, 1024, 1024) in f32.
    {"gpt2",
     {R"({"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768, "n_positions": 1024,
          "n_ctx": 1024, "vocab_size": 50257, "layer_norm_epsilon": 1e-05,
          "activation_function": "gelu_new"})",
      4, 12 * 4 * 1024 * 1024}},
    // The causal mask of each block, (1, 1, 2048, 2048) in bytes.
    {"EleutherAI/pythia-70m",
     {R"({"model_type": "gpt_neox", "num_hidden_layers": 6, "num_attention_heads": 8,
          "hidden_size": 512, "intermediate_size": 2048, "max_position_embeddings": 2048,
          "vocab_size": 50304, "rotary_pct": 0.25, "rotary_emb_base": 10000,
          "hidden_act": "gelu", "layer_norm_eps": 1e-05, "use_parallel_residual": true,
          "tie_word_embeddings": false})",
      2, 6 * 2048 * 2048}},
    {"Qwen/Qwen2.5-0.5B",
     {R"({"model_type": "qwen2", "num_hidden_layers": 24, "num_attention_heads": 14,
          "num_key_value_heads": 2, "hidden_size": 896, "intermediate_size": 4864,
          "max_position_embeddings": 32768, "vocab_size": 151936, "rope_theta": 1000000.0,
          "hidden_act": "silu", "rms_norm_eps": 1e-06, "tie_word_embeddings": true})",
      2, 0}},
};

TEST(KnownModels, HaveTheParametersThatTheirConfigsImply) {
  ASSERT_EQ(published_models().size(), facts.size());
  for (const PublishedModel& model : published_models()) {
    const auto known = facts.find(model.name);
    ASSERT_NE(known, facts.end()) << model.name;
    const std::string source(model.name);
    const Architecture architecture =
        architecture_from_json(parse_config(known->second.config, source), source);
    EXPECT_EQ(count_parameters(architecture.decoder()).total, model.parameters) << model.name;
  }
  EXPECT_EQ(count_parameters(model_preset("gpt2").config).total,
            find_published_model("gpt2")->parameters);
  EXPECT_EQ(count_parameters(model_preset("qwen2.5-0.5b").config).total,
            find_published_model("Qwen/Qwen2.5-0.5B")->parameters);
}

// What remains is the file's header: names and shapes of some hundred tensors.
TEST(KnownModels, HaveTheBytesOfTheirParametersAndBuffers) {
  for (const PublishedModel& model : published_models()) {
    const PublishedFacts& known = facts.find(model.name)->second;
    const std::int64_t header =
        model.bytes - model.parameters * known.bytes_each - known.buffer_bytes;
    EXPECT_GT(header, 5'000) << model.name;
    EXPECT_LT(header, 50'000) << model.name;
    EXPECT_LT(std::abs(static_cast<double>(header)), 0.0001 * static_cast<double>(model.bytes));
  }
}

}  // namespace
}  // namespace heed
