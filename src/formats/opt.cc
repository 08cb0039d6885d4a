// OPTForCausalLM (Zhang et al. 2022): GPT-2's block with ReLU. The smallest but one, OPT-350M, has
// norms after its branches and projections beside the embedding: it is refused.
#include "formats/encoder_fields.h"
#include "formats/format.h"
#include "formats/text_ends.h"
#include "model/parameters.h"

namespace heed {
namespace {
namespace opt {

// Rows of the position table before that of the first position.
constexpr std::int64_t unused_positions = 2;

bool expresses(const StackSpecification& stack) {
  const BlockSpecification& block = stack.block;
  const AttentionSpecification& attention = block.attention;
  return block.norm.kind == NormKind::layer && block.norm.bias && block.norm.epsilon == 1e-5F &&
         attention.positions == PositionKind::learned && attention.mask.kind == MaskKind::causal &&
         attention.key_value_heads == attention.query_heads &&
         attention.query_bias == attention.output_bias &&
         attention.query_bias == block.feed_forward.bias && !attention.query_key_norm &&
         attention.scale == 0 && attention.soft_cap == 0 && !block.feed_forward.gated &&
         !stack.is_parallel() && stack.attention_width() == stack.channels &&
         !stack.unembedding_bias;
}

StackSpecification read(const ConfigFields& fields) {
  fields.need({"do_layer_norm_before", "layer_norm_elementwise_affine"});
  fields.refuse({"_remove_final_layer_norm"});
  StackSpecification stack;
  stack.vocabulary_size = fields.integer("vocab_size");
  stack.context = fields.integer("max_position_embeddings");
  stack.channels = fields.integer("hidden_size");
  stack.layers = fields.integer("num_hidden_layers");
  set_heads(fields, "num_attention_heads", stack);
  const std::int64_t embedded = fields.integer_or("word_embed_proj_dim", stack.channels);
  require(embedded == stack.channels, ErrorCode::unsupported,
          "{}: 'word_embed_proj_dim' is {}; heed does not support embeddings of another width than "
          "hidden_size, {}",
          fields.source(), embedded, stack.channels);
  const bool bias = fields.boolean_or("enable_bias", true);
  stack.block.attention.query_bias = stack.block.attention.output_bias = bias;
  stack.block.feed_forward = {
      .width = fields.integer("ffn_dim"),
      .activation = activation_from_name(fields, "activation_function", "relu"),
      .bias = bias};
  stack.initial_deviation = fields.number_or("init_std", 0.02F);
  stack.attention_dropout = fields.number_or("attention_dropout", 0.0F);
  stack.residual_dropout = fields.number_or("dropout", 0.1F);
  stack.tied_unembedding = fields.boolean_or("tie_word_embeddings", true);
  stack.end_of_text = read_end_of_text(fields, stack.vocabulary_size);
  return stack;
}

OrderedJson write(const StackSpecification& stack) {
  OrderedJson json;
  json["architectures"] = {"OPTForCausalLM"};
  json["model_type"] = "opt";
  json["vocab_size"] = stack.vocabulary_size;
  json["max_position_embeddings"] = stack.context;
  json["hidden_size"] = json["word_embed_proj_dim"] = stack.channels;
  json["num_hidden_layers"] = stack.layers;
  json["num_attention_heads"] = stack.heads();
  json["ffn_dim"] = stack.feed_forward();
  json["activation_function"] = activation_name(stack.block.feed_forward.activation);
  json["do_layer_norm_before"] = true;
  json["enable_bias"] = stack.block.feed_forward.bias;
  json["init_std"] = short_decimal(stack.initial_deviation);
  json["attention_dropout"] = short_decimal(stack.attention_dropout);
  json["dropout"] = short_decimal(stack.residual_dropout);
  json["tie_word_embeddings"] = stack.tied_unembedding;
  json["torch_dtype"] = "float32";
  json["bos_token_id"] = json["eos_token_id"] = written_end_tokens(stack.end_of_text);
  return json;
}

const char* name_of(Role role) {
  switch (role) {
    case Role::token_embedding: return "embed_tokens";
    case Role::position_embedding: return "embed_positions";
    case Role::norm_1: return "self_attn_layer_norm";
    case Role::query_key_value: return "self_attn";
    case Role::attention_output: return "self_attn.out_proj";
    case Role::norm_2: return "final_layer_norm";
    case Role::up: return "fc1";
    case Role::down: return "fc2";
    case Role::final_norm: return "final_layer_norm";
    default: break;
  }
  fail(ErrorCode::internal, "OPT has no tensor for {}", role_name(role));
}

std::string stem_of(const ParameterId& id) {
  if (id.role == Role::unembedding) return "lm_head";
  return id.layer < 0 ? fmt::format("model.decoder.{}", name_of(id.role))
                      : fmt::format("model.decoder.layers.{}.{}", id.layer, name_of(id.role));
}

std::vector<StoredTensor> tensors(const StackSpecification& stack) {
  std::vector<StoredTensor> stored = tensors_with_projections_apart(stack, &stem_of);
  for (StoredTensor& tensor : stored) {
    if (tensor.parameter.role == Role::position_embedding) tensor.unused_rows = unused_positions;
  }
  return stored;
}

bool is_buffer(std::string_view) { return false; }

}  // namespace opt
}  // namespace

const Format& opt_format() {
  static const Format format = of_decoders({.name = "opt",
                                            .model_types = {"opt"},
                                            .prefix = "model.",
                                            .expresses = &opt::expresses,
                                            .read = &opt::read,
                                            .write = &opt::write,
                                            .tensors = &opt::tensors,
                                            .is_buffer = &opt::is_buffer});
  return format;
}

}  // namespace heed
