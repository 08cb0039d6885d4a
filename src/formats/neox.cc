// GPTNeoXForCausalLM, the architecture of Pythia: layer norms, rotary positions on a part of each
// head, attention and feed-forward side by side.
#include "formats/llama.h"
#include "model/parameters.h"

namespace heed {
namespace {
namespace neox {

bool expresses(const StackSpecification& stack) {
  const BlockSpecification& block = stack.block;
  const AttentionSpecification& attention = block.attention;
  return block.norm.kind == NormKind::layer && block.norm.bias && block.feed_forward.bias &&
         attention.positions == PositionKind::rotary &&
         attention.rotary.pairing == RotaryPairing::halves &&
         attention.mask.kind == MaskKind::causal &&
         attention.key_value_heads == attention.query_heads &&
         attention.query_bias == attention.output_bias && !attention.query_key_norm &&
         attention.scale == 0 && attention.soft_cap == 0 && !block.feed_forward.gated &&
         stack.attention_width() == stack.channels && !stack.unembedding_bias;
}

StackSpecification read(const ConfigFields& fields) {
  StackSpecification stack = read_decoder_sizes(fields);
  AttentionSpecification& attention = stack.block.attention;
  attention.rotary.fraction = fields.real_or("rotary_pct", 0.25);
  read_rotary(fields, stack.context, attention.rotary);
  attention.query_bias = attention.output_bias = fields.boolean_or("attention_bias", true);
  stack.block.norm.epsilon = fields.number_or("layer_norm_eps", 1e-5F);
  stack.block.feed_forward = {.width = stack.feed_forward(),
                              .activation = activation_from_name(fields, "hidden_act", "gelu")};
  stack.block.residual = fields.boolean_or("use_parallel_residual", true)
                             ? ResidualKind::parallel
                             : ResidualKind::sequential;
  stack.residual_dropout = fields.number_or("hidden_dropout", 0.0F);
  stack.embedding_dropout = stack.residual_dropout;
  return stack;
}

OrderedJson write(const StackSpecification& stack) {
  const AttentionSpecification& attention = stack.block.attention;
  OrderedJson json;
  json["architectures"] = {"GPTNeoXForCausalLM"};
  json["model_type"] = "gpt_neox";
  json["vocab_size"] = stack.vocabulary_size;
  json["max_position_embeddings"] = stack.context;
  json["hidden_size"] = stack.channels;
  json["intermediate_size"] = stack.feed_forward();
  json["num_hidden_layers"] = stack.layers;
  json["num_attention_heads"] = stack.heads();
  json["hidden_act"] = activation_name(stack.block.feed_forward.activation);
  json["layer_norm_eps"] = short_decimal(stack.block.norm.epsilon);
  json["rotary_pct"] = attention.rotary.fraction;
  json["rotary_emb_base"] = attention.rotary.base;
  write_rotary_scaling(attention.rotary, json);
  json["attention_bias"] = attention.query_bias;
  json["use_parallel_residual"] = stack.is_parallel();
  json["initializer_range"] = short_decimal(stack.initial_deviation);
  json["attention_dropout"] = short_decimal(stack.attention_dropout);
  json["hidden_dropout"] = short_decimal(stack.residual_dropout);
  json["tie_word_embeddings"] = stack.tied_unembedding;
  json["torch_dtype"] = "float32";
  json["eos_token_id"] = written_end_tokens(stack.end_of_text);
  return json;
}

const char* name_of(Role role) {
  switch (role) {
    case Role::token_embedding: return "gpt_neox.embed_in";
    case Role::norm_1: return "input_layernorm";
    case Role::query_key_value: return "attention.query_key_value";
    case Role::attention_output: return "attention.dense";
    case Role::norm_2: return "post_attention_layernorm";
    case Role::up: return "mlp.dense_h_to_4h";
    case Role::down: return "mlp.dense_4h_to_h";
    case Role::final_norm: return "gpt_neox.final_layer_norm";
    case Role::unembedding: return "embed_out";
    default: break;
  }
  fail(ErrorCode::internal, "GPT-NeoX has no tensor for {}", role_name(role));
}

std::vector<StoredTensor> tensors(const StackSpecification& stack) {
  std::vector<StoredTensor> stored;
  for (const Parameter& parameter : parameters_of(stack)) {
    const auto& [role, part, layer, site] = parameter.id;
    const char* const ending = part == Part::weight ? "weight" : "bias";
    stored.push_back(
        {.name = layer < 0 ? fmt::format("{}.{}", name_of(role), ending)
                           : fmt::format("gpt_neox.layers.{}.{}.{}", layer, name_of(role), ending),
         .parameter = parameter.id,
         .shape = parameter.shape,
         .storage =
             role == Role::query_key_value ? Storage::heads_interleaved : Storage::straight});
  }
  return stored;
}

// The causal mask and rotary frequencies, which older files contain.
bool is_buffer(std::string_view name) {
  return name.ends_with(".attention.bias") || name.ends_with(".attention.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq");
}

}  // namespace neox
}  // namespace

const Format& neox_format() {
  static const Format format = of_decoders({.name = "neox",
                                            .model_types = {"gpt_neox"},
                                            .prefix = "gpt_neox.",
                                            .expresses = &neox::expresses,
                                            .read = &neox::read,
                                            .write = &neox::write,
                                            .tensors = &neox::tensors,
                                            .is_buffer = &neox::is_buffer});
  return format;
}

}  // namespace heed
