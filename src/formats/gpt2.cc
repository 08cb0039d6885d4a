// GPT2LMHeadModel, and heed's own options, which its config.json cannot express, under the key
// `heed`.
#include "formats/format.h"
#include "formats/text_ends.h"
#include "model/parameters.h"

namespace heed {
namespace {
namespace gpt2 {

bool expresses(const StackSpecification& stack) {
  const BlockSpecification& block = stack.block;
  return block.norm.kind == NormKind::layer && block.attention.positions == PositionKind::learned &&
         block.attention.mask.kind != MaskKind::full &&
         block.attention.key_value_heads == block.attention.query_heads &&
         block.attention.query_bias == block.attention.output_bias &&
         block.attention.query_bias == block.norm.bias &&
         block.attention.query_bias == block.feed_forward.bias && !block.attention.query_key_norm &&
         block.attention.scale == 0 && block.attention.soft_cap == 0 && !block.feed_forward.gated &&
         !stack.is_parallel();
}

// Of each layer, 0 for those that see all positions, as GPT-3 alternates dense and banded layers.
MaskSpecification read_windows(const ConfigFields& own) {
  const Json& listed = own.at("attention_windows");
  require(listed.is_array(), ErrorCode::corrupt_data,
          "{}: 'attention_windows' must be a list of a window for each layer, not {}", own.source(),
          shown_json(listed));
  MaskSpecification mask{.kind = MaskKind::banded};
  for (const Json& window : listed) {
    mask.windows.push_back(own.integer_of(window, "attention_windows", 0));
  }
  return mask;
}

StackSpecification read(const ConfigFields& fields) {
  fields.refuse({"scale_attn_by_inverse_layer_idx", "add_cross_attention", "is_encoder_decoder"});
  require(fields.boolean_or("scale_attn_weights", true), ErrorCode::unsupported,
          "{}: scale_attn_weights is false; heed always scales scores by 1/sqrt(head size)",
          fields.source());

  StackSpecification stack;
  stack.vocabulary_size = fields.integer("vocab_size");
  stack.context = fields.has("n_positions") || !fields.has("n_ctx")
                      ? fields.integer_under({"n_positions", "max_position_embeddings"})
                      : fields.integer("n_ctx");
  stack.channels = fields.integer_under({"n_embd", "hidden_size"});
  stack.layers = fields.integer_under({"n_layer", "num_hidden_layers"});
  AttentionSpecification& attention = stack.block.attention;
  attention.query_heads = attention.key_value_heads =
      fields.integer_under({"n_head", "num_attention_heads"});
  // Checked before other values are derived from them.
  require_config_extents(
      fields, {{"channels", stack.channels}, {"heads", attention.query_heads, max_heads}});
  stack.block.feed_forward.width = fields.integer_or("n_inner", 4 * stack.channels);
  stack.block.feed_forward.activation =
      activation_from_name(fields, "activation_function", "gelu_new");
  stack.block.norm.epsilon = fields.number_or("layer_norm_epsilon", 1e-5F);
  stack.initial_deviation = fields.number_or("initializer_range", 0.02F);
  stack.embedding_dropout = fields.number_or("embd_pdrop", 0.1F);
  stack.attention_dropout = fields.number_or("attn_pdrop", 0.1F);
  stack.residual_dropout = fields.number_or("resid_pdrop", 0.1F);
  stack.tied_unembedding = fields.boolean_or("tie_word_embeddings", true);
  stack.end_of_text = read_end_of_text(fields, stack.vocabulary_size);

  const ConfigFields own = fields.object_or_empty("heed");
  set_biases(stack, own.boolean_or("bias", true) ? Biases::all : Biases::none);
  stack.unembedding_bias = own.boolean_or("head_bias", false);
  if (own.has("attention_windows")) attention.mask = read_windows(own);
  if (own.has("head_size")) {
    attention.head_size = own.integer("head_size");
  } else {
    require(stack.channels % attention.query_heads == 0, ErrorCode::corrupt_data,
            "{}: n_embd {} is not a multiple of n_head {}", fields.source(), stack.channels,
            attention.query_heads);
    attention.head_size = stack.channels / attention.query_heads;
  }
  return stack;
}

OrderedJson write(const StackSpecification& stack) {
  OrderedJson json;
  json["architectures"] = {"GPT2LMHeadModel"};
  json["model_type"] = "gpt2";
  json["vocab_size"] = stack.vocabulary_size;
  json["n_positions"] = stack.context;
  json["n_ctx"] = stack.context;  // read by older converters
  json["n_embd"] = stack.channels;
  json["n_layer"] = stack.layers;
  json["n_head"] = stack.heads();
  json["n_inner"] = stack.feed_forward();
  json["activation_function"] = activation_name(stack.block.feed_forward.activation);
  json["layer_norm_epsilon"] = short_decimal(stack.block.norm.epsilon);
  json["initializer_range"] = short_decimal(stack.initial_deviation);
  json["embd_pdrop"] = short_decimal(stack.embedding_dropout);
  json["attn_pdrop"] = short_decimal(stack.attention_dropout);
  json["resid_pdrop"] = short_decimal(stack.residual_dropout);
  json["scale_attn_weights"] = true;
  json["tie_word_embeddings"] = stack.tied_unembedding;
  json["torch_dtype"] = "float32";
  json["bos_token_id"] = json["eos_token_id"] = written_end_tokens(stack.end_of_text);
  OrderedJson own = OrderedJson::object();
  if (!has_biases(stack)) own["bias"] = false;  // zero biases are written all the same
  if (stack.unembedding_bias) own["head_bias"] = true;
  if (!stack.block.attention.mask.windows.empty()) {
    own["attention_windows"] = stack.block.attention.mask.windows;
  }
  if (stack.attention_width() != stack.channels) own["head_size"] = stack.head_size();
  if (!own.empty()) json["heed"] = own;
  return json;
}

struct Name {
  const char* text;
  Storage storage = Storage::straight;
};

// Matrices are Conv1D, [in, out].
Name name_of(Role role) {
  switch (role) {
    case Role::token_embedding: return {"wte"};
    case Role::position_embedding: return {"wpe"};
    case Role::norm_1: return {"ln_1"};
    case Role::query_key_value: return {"attn.c_attn", Storage::transposed};
    case Role::attention_output: return {"attn.c_proj", Storage::transposed};
    case Role::norm_2: return {"ln_2"};
    case Role::up: return {"mlp.c_fc", Storage::transposed};
    case Role::down: return {"mlp.c_proj", Storage::transposed};
    case Role::final_norm: return {"ln_f"};
    case Role::unembedding: return {"lm_head"};
    default: break;
  }
  fail(ErrorCode::internal, "GPT-2 has no {}", role_name(role));
}

// A file has all biases: a model without them is written with zeros.
std::vector<StoredTensor> tensors(const StackSpecification& stack) {
  StackSpecification in_file = stack;
  set_biases(in_file, Biases::all);
  std::vector<StoredTensor> stored;
  for (const Parameter& parameter : parameters_of(in_file)) {
    const auto& [role, part, layer, site] = parameter.id;
    const Name name = name_of(role);
    const char* const ending = part == Part::weight ? "weight" : "bias";
    stored.push_back({.name = layer < 0 ? fmt::format("{}.{}", name.text, ending)
                                        : fmt::format("h.{}.{}.{}", layer, name.text, ending),
                      .parameter = parameter.id,
                      .shape = parameter.shape,
                      .storage = part == Part::weight ? name.storage : Storage::straight});
  }
  return stored;
}

// Buffers of the causal mask, which older files contain.
bool is_buffer(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

}  // namespace gpt2
}  // namespace

const Format& gpt2_format() {
  static const Format format = of_decoders({.name = "gpt2",
                                            .model_types = {"gpt2"},
                                            .prefix = "transformer.",
                                            .expresses = &gpt2::expresses,
                                            .read = &gpt2::read,
                                            .write = &gpt2::write,
                                            .tensors = &gpt2::tensors,
                                            .is_buffer = &gpt2::is_buffer});
  return format;
}

}  // namespace heed
