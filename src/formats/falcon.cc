// FalconForCausalLM: layer norms, rotary positions, GELU without a gate. 7B: both branches read one
// norm, and all query heads share one key; 40B (new_decoder_architecture): a norm for each branch,
// and groups of heads. Variants with ALiBi are refused.
#include "formats/encoder_fields.h"
#include "formats/format.h"
#include "formats/text_ends.h"
#include "model/parameters.h"

namespace heed {
namespace {
namespace falcon {

constexpr std::int64_t usual_context = 2048;  // configs may not name it

StackSpecification usual(StackSpecification stack) {
  if (stack.shares_norm()) stack.block.residual = ResidualKind::parallel;
  return stack;
}

// Heads that the older layout has: one key for all, or one each.
bool has_old_heads(const AttentionSpecification& attention) {
  return attention.key_value_heads == 1 || attention.key_value_heads == attention.query_heads;
}

// Whether a config says so by new_decoder_architecture.
bool is_new(const StackSpecification& stack) {
  return stack.block.residual == ResidualKind::parallel ||
         (stack.shares_norm() && !has_old_heads(stack.block.attention));
}

bool expresses(const StackSpecification& stack) {
  const BlockSpecification& block = stack.block;
  const AttentionSpecification& attention = block.attention;
  return block.norm.kind == NormKind::layer && block.norm.bias &&
         attention.positions == PositionKind::rotary && attention.rotary.fraction == 1 &&
         attention.rotary.pairing == RotaryPairing::halves &&
         attention.mask.kind == MaskKind::causal && attention.query_bias == attention.output_bias &&
         attention.query_bias == block.feed_forward.bias && !attention.query_key_norm &&
         attention.scale == 0 && attention.soft_cap == 0 && !block.feed_forward.gated &&
         stack.attention_width() == stack.channels && !stack.unembedding_bias &&
         (is_new(stack) || has_old_heads(attention));
}

// How norms and branches follow each other.
ResidualKind read_residual(const ConfigFields& fields) {
  const bool is_new = fields.boolean_or("new_decoder_architecture", false);
  const bool is_parallel = fields.boolean_or("parallel_attn", true);
  const std::int64_t norms = fields.integer_or("num_ln_in_parallel_attn", is_new ? 2 : 1);
  require(is_parallel || !is_new, ErrorCode::unsupported,
          "{}: 'parallel_attn' is false; heed does not support it with new_decoder_architecture",
          fields.source());
  require(norms == 1 || (norms == 2 && is_new), ErrorCode::unsupported,
          "{}: 'num_ln_in_parallel_attn' is {}; heed supports 1, and 2 with "
          "new_decoder_architecture",
          fields.source(), norms);
  if (!is_parallel) return ResidualKind::sequential;
  return norms == 2 ? ResidualKind::parallel : ResidualKind::parallel_shared;
}

StackSpecification read(const ConfigFields& fields) {
  fields.refuse({"alibi"});
  StackSpecification stack;
  stack.vocabulary_size = fields.integer("vocab_size");
  stack.context = fields.integer_or("max_position_embeddings", usual_context);
  stack.channels = fields.integer("hidden_size");
  stack.layers = fields.integer_under({"num_hidden_layers", "n_layer"});
  set_heads(fields, fields.has("n_head") ? "n_head" : "num_attention_heads", stack);
  AttentionSpecification& attention = stack.block.attention;
  attention.positions = PositionKind::rotary;
  if (fields.boolean_or("new_decoder_architecture", false)) {
    attention.key_value_heads = fields.integer_or("num_kv_heads", attention.query_heads);
  } else if (fields.boolean_or("multi_query", true)) {
    attention.key_value_heads = 1;
  }
  read_rotary(fields, stack.context, attention.rotary);
  const bool bias = fields.boolean_or("bias", false);
  attention.query_bias = attention.output_bias = bias;
  stack.block.norm.epsilon = fields.number_or("layer_norm_epsilon", 1e-5F);
  stack.block.residual = read_residual(fields);
  stack.block.feed_forward = {.width = fields.integer_or("ffn_hidden_size", 4 * stack.channels),
                              .activation = activation_from_name(fields, "activation", "gelu"),
                              .bias = bias};
  stack.initial_deviation = fields.number_or("initializer_range", 0.02F);
  stack.attention_dropout = fields.number_or("attention_dropout", 0.0F);
  stack.residual_dropout = fields.number_or("hidden_dropout", 0.0F);
  stack.tied_unembedding = fields.boolean_or("tie_word_embeddings", true);
  stack.end_of_text = read_end_of_text(fields, stack.vocabulary_size);
  return stack;
}

OrderedJson write(const StackSpecification& stack) {
  const AttentionSpecification& attention = stack.block.attention;
  OrderedJson json;
  json["architectures"] = {"FalconForCausalLM"};
  json["model_type"] = "falcon";
  json["vocab_size"] = stack.vocabulary_size;
  json["max_position_embeddings"] = stack.context;
  json["hidden_size"] = stack.channels;
  json["ffn_hidden_size"] = stack.feed_forward();
  json["num_hidden_layers"] = stack.layers;
  json["num_attention_heads"] = stack.heads();
  json["new_decoder_architecture"] = is_new(stack);
  json["multi_query"] = !is_new(stack) && attention.key_value_heads == 1;
  json["num_kv_heads"] = attention.key_value_heads;
  json["parallel_attn"] = stack.is_parallel();
  json["num_ln_in_parallel_attn"] = stack.block.residual == ResidualKind::parallel ? 2 : 1;
  json["alibi"] = false;
  json["bias"] = attention.query_bias;
  json["activation"] = activation_name(stack.block.feed_forward.activation);
  json["layer_norm_epsilon"] = short_decimal(stack.block.norm.epsilon);
  json["rope_theta"] = attention.rotary.base;
  write_rotary_scaling(attention.rotary, json);
  json["initializer_range"] = short_decimal(stack.initial_deviation);
  json["attention_dropout"] = short_decimal(stack.attention_dropout);
  json["hidden_dropout"] = short_decimal(stack.residual_dropout);
  json["tie_word_embeddings"] = stack.tied_unembedding;
  json["torch_dtype"] = "float32";
  json["bos_token_id"] = json["eos_token_id"] = written_end_tokens(stack.end_of_text);
  return json;
}

const char* name_of(const StackSpecification& stack, Role role) {
  const bool has_two_norms = stack.block.residual == ResidualKind::parallel;
  switch (role) {
    case Role::token_embedding: return "transformer.word_embeddings";
    case Role::norm_1: return has_two_norms ? "ln_attn" : "input_layernorm";
    case Role::query_key_value: return "self_attention.query_key_value";
    case Role::attention_output: return "self_attention.dense";
    case Role::norm_2: return has_two_norms ? "ln_mlp" : "post_attention_layernorm";
    case Role::up: return "mlp.dense_h_to_4h";
    case Role::down: return "mlp.dense_4h_to_h";
    case Role::final_norm: return "transformer.ln_f";
    case Role::unembedding: return "lm_head";
    default: break;
  }
  fail(ErrorCode::internal, "Falcon has no tensor for {}", role_name(role));
}

std::vector<StoredTensor> tensors(const StackSpecification& stack) {
  std::vector<StoredTensor> stored;
  for (const Parameter& parameter : parameters_of(stack)) {
    const auto& [role, part, layer, site] = parameter.id;
    const char* const name = name_of(stack, role);
    // With one key, rows are in the order of memory.
    const bool moves = role == Role::query_key_value && stack.key_value_heads() > 1;
    stored.push_back(
        {.name = layer < 0 ? fmt::format("{}.{}", name, part_name(part))
                           : fmt::format("transformer.h.{}.{}.{}", layer, name, part_name(part)),
         .parameter = parameter.id,
         .shape = parameter.shape,
         .storage = moves ? Storage::heads_interleaved : Storage::straight});
  }
  return stored;
}

bool is_buffer(std::string_view name) { return name.ends_with(".rotary_emb.inv_freq"); }

}  // namespace falcon
}  // namespace

const Format& falcon_format() {
  static const Format format = of_decoders({.name = "falcon",
                                            .model_types = {"falcon"},
                                            .prefix = "transformer.",
                                            .expresses = &falcon::expresses,
                                            .read = &falcon::read,
                                            .write = &falcon::write,
                                            .tensors = &falcon::tensors,
                                            .is_buffer = &falcon::is_buffer,
                                            .usual = &falcon::usual});
  return format;
}

}  // namespace heed
