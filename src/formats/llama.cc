// LlamaForCausalLM.
#include "formats/llama.h"

#include <algorithm>

#include "model/parameters.h"

namespace heed {
namespace {

struct Slice {
  const char* name;
  std::int64_t first_row;
  std::int64_t rows;
};

// The rows of query_key_value by tensor.
std::vector<Slice> projections(const AttentionSpecification& attention) {
  const std::int64_t a = attention.query_width(), k = attention.key_value_width();
  return {{"q_proj", 0, a}, {"k_proj", a, k}, {"v_proj", a + k, k}};
}

const char* llama_name(Role role) {
  switch (role) {
    case Role::token_embedding: return "model.embed_tokens";
    case Role::norm_1: return "input_layernorm";
    case Role::query_norm: return "self_attn.q_norm";
    case Role::key_norm: return "self_attn.k_norm";
    case Role::attention_output: return "self_attn.o_proj";
    case Role::norm_2: return "post_attention_layernorm";
    case Role::gate: return "mlp.gate_proj";
    case Role::up: return "mlp.up_proj";
    case Role::attention_out_norm: return "post_attention_layernorm";
    case Role::down: return "mlp.down_proj";
    case Role::feed_forward_out_norm: return "post_feedforward_layernorm";
    case Role::final_norm: return "model.norm";
    case Role::unembedding: return "lm_head";
    default: break;
  }
  fail(ErrorCode::internal, "LLaMA has no tensor for {}", role_name(role));
}

namespace llama {

bool expresses(const StackSpecification& stack) {
  const AttentionSpecification& attention = stack.block.attention;
  return is_llama_like(stack) && attention.mask.kind == MaskKind::causal &&
         attention.query_bias == attention.output_bias && !attention.query_key_norm;
}

StackSpecification read(const ConfigFields& fields) {
  StackSpecification stack = read_llama_like(fields);
  AttentionSpecification& attention = stack.block.attention;
  attention.query_bias = attention.output_bias = fields.boolean_or("attention_bias", false);
  stack.block.feed_forward.bias = fields.boolean_or("mlp_bias", false);
  return stack;
}

OrderedJson write(const StackSpecification& stack) {
  OrderedJson json = write_llama_like(stack, "llama", "LlamaForCausalLM");
  json["attention_bias"] = stack.block.attention.query_bias;
  json["mlp_bias"] = stack.block.feed_forward.bias;
  return json;
}

}  // namespace llama

}  // namespace

StackSpecification read_decoder_sizes(const ConfigFields& fields) {
  StackSpecification stack;
  stack.vocabulary_size = fields.integer("vocab_size");
  stack.context = fields.integer("max_position_embeddings");
  stack.channels = fields.integer("hidden_size");
  stack.layers = fields.integer("num_hidden_layers");
  stack.block.feed_forward.width = fields.integer("intermediate_size");
  AttentionSpecification& attention = stack.block.attention;
  attention.query_heads = attention.key_value_heads = fields.integer("num_attention_heads");
  require_config_extents(fields, {{"layers", stack.layers, max_layers},
                                  {"channels", stack.channels},
                                  {"heads", attention.query_heads, max_heads},
                                  {"context", stack.context}});
  if (fields.has("head_dim")) {
    attention.head_size = fields.integer("head_dim");
  } else {
    require(stack.channels % attention.query_heads == 0, ErrorCode::corrupt_data,
            "{}: hidden_size {} is not a multiple of num_attention_heads {}", fields.source(),
            stack.channels, attention.query_heads);
    attention.head_size = stack.channels / attention.query_heads;
  }
  attention.positions = PositionKind::rotary;
  stack.initial_deviation = fields.number_or("initializer_range", 0.02F);
  stack.attention_dropout = fields.number_or("attention_dropout", 0.0F);
  stack.tied_unembedding = fields.boolean_or("tie_word_embeddings", false);
  stack.end_of_text = read_end_of_text(fields, stack.vocabulary_size);
  fields.refuse({"is_encoder_decoder", "add_cross_attention"});
  return stack;
}

StackSpecification read_llama_like(const ConfigFields& fields) {
  StackSpecification stack = read_decoder_sizes(fields);
  AttentionSpecification& attention = stack.block.attention;
  attention.key_value_heads = fields.integer_or("num_key_value_heads", attention.query_heads);
  read_rotary(fields, stack.context, attention.rotary);
  stack.block.norm = {
      .kind = NormKind::rms, .epsilon = fields.number_or("rms_norm_eps", 1e-6F), .bias = false};
  stack.block.feed_forward = {.width = stack.feed_forward(),
                              .activation = activation_from_name(fields, "hidden_act", "silu"),
                              .gated = true,
                              .bias = false};
  attention.query_bias = attention.output_bias = false;
  return stack;
}

OrderedJson write_llama_like(const StackSpecification& stack, const char* model_type,
                             const char* architecture) {
  OrderedJson json;
  json["architectures"] = {architecture};
  json["model_type"] = model_type;
  json["vocab_size"] = stack.vocabulary_size;
  json["max_position_embeddings"] = stack.context;
  json["hidden_size"] = stack.channels;
  json["intermediate_size"] = stack.feed_forward();
  json["num_hidden_layers"] = stack.layers;
  json["num_attention_heads"] = stack.heads();
  json["num_key_value_heads"] = stack.key_value_heads();
  json["head_dim"] = stack.head_size();
  json["hidden_act"] = activation_name(stack.block.feed_forward.activation);
  json["rms_norm_eps"] = short_decimal(stack.block.norm.epsilon);
  json["rope_theta"] = stack.block.attention.rotary.base;
  write_rotary_scaling(stack.block.attention.rotary, json);
  json["initializer_range"] = short_decimal(stack.initial_deviation);
  json["attention_dropout"] = short_decimal(stack.attention_dropout);
  json["tie_word_embeddings"] = stack.tied_unembedding;
  json["torch_dtype"] = "float32";
  json["eos_token_id"] = written_end_tokens(stack.end_of_text);
  return json;
}

bool is_llama_like(const StackSpecification& stack) {
  const BlockSpecification& block = stack.block;
  return block.norm.kind == NormKind::rms && block.attention.positions == PositionKind::rotary &&
         block.attention.mask.kind != MaskKind::full && block.attention.scale == 0 &&
         block.attention.soft_cap == 0 && block.attention.rotary.fraction == 1 &&
         block.attention.rotary.pairing == RotaryPairing::halves && block.feed_forward.gated &&
         !stack.is_parallel() && !stack.unembedding_bias;
}

std::vector<StoredTensor> llama_like_tensors(const StackSpecification& stack) {
  std::vector<StoredTensor> stored;
  for (const Parameter& parameter : parameters_of(stack)) {
    const auto& [role, part, layer, site] = parameter.id;
    const char* const ending = part == Part::weight ? "weight" : "bias";
    if (role == Role::query_key_value) {
      for (const Slice& slice : projections(stack.block.attention)) {
        const Shape shape =
            part == Part::weight ? Shape{slice.rows, parameter.shape[1]} : Shape{slice.rows};
        stored.push_back(
            {.name = fmt::format("model.layers.{}.self_attn.{}.{}", layer, slice.name, ending),
             .parameter = parameter.id,
             .shape = shape,
             .first_row = slice.first_row});
      }
      continue;
    }
    stored.push_back(
        {.name = layer < 0 ? fmt::format("{}.{}", llama_name(role), ending)
                           : fmt::format("model.layers.{}.{}.{}", layer, llama_name(role), ending),
         .parameter = parameter.id,
         .shape = parameter.shape});
  }
  return stored;
}

bool is_llama_like_buffer(std::string_view name) { return name.ends_with(".rotary_emb.inv_freq"); }

const Format& llama_format() {
  static const Format format = of_decoders({.name = "llama",
                                            .model_types = {"llama"},
                                            .prefix = "model.",
                                            .expresses = &llama::expresses,
                                            .read = &llama::read,
                                            .write = &llama::write,
                                            .tensors = &llama_like_tensors,
                                            .is_buffer = &is_llama_like_buffer});
  return format;
}

}  // namespace heed
