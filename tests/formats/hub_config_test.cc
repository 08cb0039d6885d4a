// The config.json of published models, in so far as it says what is computed, and the parameters
// that they are published with.
#include "formats/config_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "base/json.h"
#include "formats/format.h"
#include "model/architecture.h"
#include "model/parameter_count.h"

namespace heed {
namespace {
namespace hub_config {

using testing::expect_error;

StackSpecification described(const Json& document) {
  return stack_config_from_json(document, "config.json");
}
// As it is read of what is written.
StackSpecification again(const StackSpecification& stack) {
  return described(Json::parse(stack_config_to_json(stack).dump()));
}

// The config.json of StarCoder2 3B on the hub, in so far as it says what is computed.
TEST(HubConfig, ReadsStarcoder2) {
  Json document = Json::parse(R"({
    "architectures": ["Starcoder2ForCausalLM"], "attention_dropout": 0.1, "bos_token_id": 0,
    "embedding_dropout": 0.1, "eos_token_id": 0, "hidden_act": "gelu_pytorch_tanh",
    "hidden_size": 3072, "initializer_range": 0.018042, "intermediate_size": 12288,
    "max_position_embeddings": 16384, "model_type": "starcoder2", "norm_epsilon": 1e-05,
    "num_attention_heads": 24, "num_hidden_layers": 30, "num_key_value_heads": 2,
    "residual_dropout": 0.1, "rope_theta": 999999.4420358813, "sliding_window": 4096,
    "use_bias": true, "vocab_size": 49152
  })");
  const StackSpecification stack = described(document);
  EXPECT_EQ(count_parameters(stack).total, 3'030'371'328);  // as published
  EXPECT_EQ(stack.block.attention.window(29), 4096);
  EXPECT_TRUE(stack.tied_unembedding);
  EXPECT_EQ(again(stack), stack);
  document["sliding_window"] = nullptr;
  EXPECT_EQ(described(document).block.attention.mask, MaskSpecification{});
  document["sliding_window"] = 0;
  expect_error(
      ErrorCode::corrupt_data, [&] { described(document); }, "'sliding_window' must be at least 1");
}

TEST(HubConfig, ReadsGptNeo) {
  Json document = Json::parse(R"({
    "activation_function": "gelu_new", "architectures": ["GPTNeoForCausalLM"],
    "attention_dropout": 0, "attention_layers": ["global", "local"],
    "attention_types": [[["global", "local"], 6]], "bos_token_id": 50256, "embed_dropout": 0,
    "eos_token_id": 50256, "hidden_size": 768, "initializer_range": 0.02,
    "intermediate_size": null, "layer_norm_epsilon": 1e-05, "max_position_embeddings": 2048,
    "model_type": "gpt_neo", "num_heads": 12, "num_layers": 12, "resid_dropout": 0,
    "vocab_size": 50257, "window_size": 256
  })");
  const StackSpecification stack = described(document);
  EXPECT_EQ(count_parameters(stack).total, 125'198'592);  // as published
  EXPECT_EQ(stack.block.attention.window(0), 0);
  EXPECT_EQ(stack.block.attention.window(11), 256);
  EXPECT_EQ(stack.block.attention.score_scale(), 1.0F);
  EXPECT_EQ(again(stack), stack);
  const auto refuse = [&](const Json& types, const std::string& message) {
    document["attention_types"] = types;
    expect_error(
        ErrorCode::corrupt_data, [&] { described(document); }, message);
  };
  refuse(Json::parse(R"([[["global"], 5]])"), "lists 5 layers, and num_layers is 12");
  refuse(Json::parse(R"([[["global"], 13]])"), "more layers than num_layers 12");
  refuse(Json::parse(R"([[["near"], 12]])"), "near");
  refuse(Json::parse(R"(["global"])"), "a part of 'attention_types' must be");
  refuse(nullptr, "'attention_types' is missing");
}

TEST(HubConfig, ReadsOpt) {
  Json document = Json::parse(R"({
    "_remove_final_layer_norm": false, "activation_dropout": 0.0, "activation_function": "relu",
    "architectures": ["OPTForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 2,
    "do_layer_norm_before": true, "dropout": 0.1, "eos_token_id": 2, "ffn_dim": 3072,
    "hidden_size": 768, "init_std": 0.02, "layerdrop": 0.0, "max_position_embeddings": 2048,
    "model_type": "opt", "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 1,
    "vocab_size": 50272, "word_embed_proj_dim": 768
  })");
  const StackSpecification stack = described(document);
  // As published, but for the two rows of positions that nothing reads.
  EXPECT_EQ(count_parameters(stack).total, 125'239'296 - 2 * 768);
  EXPECT_EQ(stack.end_of_text, 2);
  document["do_layer_norm_before"] = false;  // OPT-350M
  expect_error(
      ErrorCode::unsupported, [&] { described(document); }, "'do_layer_norm_before' is false");
  document["do_layer_norm_before"] = true;
  document["word_embed_proj_dim"] = 512;
  expect_error(
      ErrorCode::unsupported, [&] { described(document); }, "'word_embed_proj_dim' is 512", "768");
}

// The config.json of OLMo 2 7B on the hub, in so far as it says what is computed.
TEST(HubConfig, ReadsOlmo2) {
  const StackSpecification stack = described(Json::parse(R"({
    "architectures": ["Olmo2ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "eos_token_id": 100257, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
    "intermediate_size": 11008, "max_position_embeddings": 4096, "model_type": "olmo2",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
    "pad_token_id": 100277, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 500000,
    "tie_word_embeddings": false, "vocab_size": 100352
  })"));
  EXPECT_EQ(count_parameters(stack).total, 7'298'617'344);  // as published
  EXPECT_EQ(again(stack), stack);
}

TEST(HubConfig, ReadsPhi3) {
  Json document = Json::parse(R"({
    "architectures": ["Phi3ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1,
    "embd_pdrop": 0.0, "eos_token_id": 32000, "hidden_act": "silu", "hidden_size": 3072,
    "initializer_range": 0.02, "intermediate_size": 8192, "max_position_embeddings": 4096,
    "model_type": "phi3", "num_attention_heads": 32, "num_hidden_layers": 32,
    "num_key_value_heads": 32, "original_max_position_embeddings": 4096, "pad_token_id": 32000,
    "resid_pdrop": 0.0, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0,
    "sliding_window": 2047, "tie_word_embeddings": false, "vocab_size": 32064
  })");
  const StackSpecification stack = described(document);
  EXPECT_EQ(count_parameters(stack).total, 3'821'079'552);  // as published
  EXPECT_EQ(stack.block.attention.window(31), 2047);
  EXPECT_EQ(again(stack), stack);
  // Of 128k: a context 32 times as long, whose scaling is named by its older key.
  document["max_position_embeddings"] = 131072;
  document["rope_scaling"] = {{"type", "su"},
                              {"short_factor", std::vector<double>(48, 1.05)},
                              {"long_factor", std::vector<double>(48, 1.2)}};
  const StackSpecification long_stack = described(document);
  const RotaryScaling& scaling = long_stack.block.attention.rotary.scaling;
  EXPECT_EQ(long_stack.context, 131072);
  EXPECT_EQ(scaling.kind, RotaryScalingKind::longrope);
  EXPECT_EQ(scaling.original_context, 4096);
  EXPECT_EQ(scaling.factor, 32);
  EXPECT_EQ(again(long_stack), long_stack);
  // In its own format, whose programs expect no more than the factors.
  const OrderedJson written = phi3_format().write({.stacks = {long_stack}});
  EXPECT_EQ(written["rope_scaling"].size(), 3U);
  EXPECT_EQ(described(Json::parse(written.dump())), long_stack);
}

TEST(HubConfig, ReadsGemma2) {
  Json document = Json::parse(R"({
    "architectures": ["Gemma2ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "attn_logit_softcapping": 50.0, "bos_token_id": 2, "cache_implementation": "hybrid",
    "eos_token_id": [1, 107], "final_logit_softcapping": 30.0, "head_dim": 256,
    "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 2304, "initializer_range": 0.02, "intermediate_size": 9216,
    "max_position_embeddings": 8192, "model_type": "gemma2", "num_attention_heads": 8,
    "num_hidden_layers": 26, "num_key_value_heads": 4, "pad_token_id": 0,
    "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
    "sliding_window": 4096, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 256000
  })");
  const StackSpecification stack = described(document);
  EXPECT_EQ(count_parameters(stack).total, 2'614'341'888);  // as published
  EXPECT_EQ(stack.block.attention.window(0), 4096);
  EXPECT_EQ(stack.block.attention.window(25), 0);
  EXPECT_EQ(stack.block.attention.scale, 0);  // 1/√D
  EXPECT_EQ(stack.embedding_scale, 48);       // √2304 is whole
  EXPECT_TRUE(stack.tied_unembedding);
  EXPECT_EQ(again(stack), stack);
  document["query_pre_attn_scalar"] = 144;  // of 27B, whose heads are narrower than C / H
  document["hidden_size"] = 3584;
  const StackSpecification other = described(document);
  EXPECT_EQ(other.block.attention.score_scale(), 1.0F / 12);
  EXPECT_EQ(other.embedding_scale, 59.75F);  // √3584 = 59.87 in bf16
  EXPECT_EQ(again(other), other);
  document["torch_dtype"] = "float32";
  EXPECT_EQ(described(document).embedding_scale, std::sqrt(3584.0F));
  document["final_logit_softcapping"] = 0.0;
  expect_error(
      ErrorCode::corrupt_data, [&] { described(document); },
      "'final_logit_softcapping' must be above 0");
  document["final_logit_softcapping"] = nullptr;
  EXPECT_EQ(described(document).logit_cap, 0);
  document.erase("final_logit_softcapping");
  EXPECT_EQ(described(document).logit_cap, 30);
  document["layer_types"] = {"chunked_attention"};
  expect_error(
      ErrorCode::corrupt_data, [&] { described(document); }, "'layer_types'", "26 layers");
}

TEST(HubConfig, ReadsGemma3) {
  Json document = Json::parse(R"({
    "architectures": ["Gemma3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "attn_logit_softcapping": null, "bos_token_id": 2, "eos_token_id": [1, 106],
    "final_logit_softcapping": null, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 1152, "initializer_range": 0.02, "intermediate_size": 6912,
    "max_position_embeddings": 32768, "model_type": "gemma3_text", "num_attention_heads": 4,
    "num_hidden_layers": 26, "num_key_value_heads": 1, "pad_token_id": 0,
    "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_local_base_freq": 10000,
    "rope_scaling": null, "rope_theta": 1000000, "sliding_window": 512,
    "sliding_window_pattern": 6, "torch_dtype": "bfloat16", "vocab_size": 262144
  })");
  const StackSpecification stack = described(document);
  EXPECT_EQ(count_parameters(stack).total, 999'885'952);  // as published
  const AttentionSpecification& attention = stack.block.attention;
  EXPECT_EQ(attention.window(4), 512);
  EXPECT_EQ(attention.window(5), 0);
  EXPECT_EQ(attention.rotary_of(4).base, 10000);
  EXPECT_EQ(attention.rotary_of(5).base, 1000000);
  EXPECT_EQ(again(stack), stack);
  // As newer files have it.
  document.erase("rope_theta");
  document.erase("rope_local_base_freq");
  document["rope_parameters"] = {
      {"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 1e6}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}}};
  const StackSpecification newer = described(document);
  EXPECT_EQ(newer.block.attention.rotary_of(4), attention.rotary_of(4));
  EXPECT_EQ(newer.block.attention.rotary_of(5).scaling.factor, 8);
  document["model_type"] = "gemma3";  // with a part for pictures
  expect_error(
      ErrorCode::unsupported, [&] { described(document); }, "'gemma3'");
}

TEST(HubConfig, ReadsFalcon) {
  Json document = Json::parse(R"({
    "alibi": false, "architectures": ["FalconForCausalLM"], "attention_dropout": 0.0,
    "bias": false, "bos_token_id": 11, "eos_token_id": 11, "hidden_dropout": 0.0,
    "hidden_size": 4544, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
    "model_type": "falcon", "multi_query": true, "new_decoder_architecture": false,
    "num_attention_heads": 71, "num_hidden_layers": 32, "parallel_attn": true,
    "vocab_size": 65024
  })");
  const StackSpecification stack = described(document);
  EXPECT_EQ(count_parameters(stack).total, 6'921'720'704);  // as published
  EXPECT_EQ(stack.block.residual, ResidualKind::parallel_shared);
  EXPECT_EQ(stack.key_value_heads(), 1);
  EXPECT_EQ(again(stack), stack);
  Json large = document;  // of 40B
  large.update({{"hidden_size", 8192},
                {"new_decoder_architecture", true},
                {"num_kv_heads", 8},
                {"num_attention_heads", 128},
                {"num_hidden_layers", 60}});
  const StackSpecification newer = described(large);
  EXPECT_EQ(count_parameters(newer).total, 41'303'293'952);  // as published
  EXPECT_EQ(newer.block.residual, ResidualKind::parallel);
  EXPECT_EQ(again(newer), newer);
  large["num_ln_in_parallel_attn"] = 1;  // of Falcon 2
  EXPECT_TRUE(described(large).shares_norm());
  EXPECT_EQ(again(described(large)), described(large));
  document["parallel_attn"] = false;
  EXPECT_EQ(described(document).block.residual, ResidualKind::sequential);
  EXPECT_EQ(again(described(document)), described(document));
  document["alibi"] = true;
  expect_error(
      ErrorCode::unsupported, [&] { described(document); }, "'alibi' is true");
  large["parallel_attn"] = false;
  expect_error(
      ErrorCode::unsupported, [&] { described(large); }, "'parallel_attn' is false");
}

}  // namespace hub_config
}  // namespace
}  // namespace heed
