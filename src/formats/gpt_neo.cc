// GPTNeoForCausalLM: GPT-2 with scores that are not scaled, no biases of queries, keys and values,
// and layers that see a window of positions between those that see all, as GPT-3 alternates them.
#include <algorithm>

#include "formats/encoder_fields.h"
#include "formats/format.h"
#include "formats/text_ends.h"
#include "model/parameters.h"

namespace heed {
namespace {
namespace gpt_neo {

// 0 for layers that see all, one and the same window for the others.
bool has_one_window(const std::vector<std::int64_t>& windows) {
  const std::int64_t widest = windows.empty() ? 0 : *std::ranges::max_element(windows);
  return std::ranges::all_of(windows,
                             [&](std::int64_t window) { return window == 0 || window == widest; });
}

bool expresses(const StackSpecification& stack) {
  const BlockSpecification& block = stack.block;
  const AttentionSpecification& attention = block.attention;
  return block.norm.kind == NormKind::layer && block.norm.bias && block.feed_forward.bias &&
         attention.positions == PositionKind::learned && attention.mask.kind != MaskKind::full &&
         has_one_window(attention.mask.windows) &&
         attention.key_value_heads == attention.query_heads && !attention.query_bias &&
         attention.output_bias && !attention.query_key_norm && attention.scale == 1 &&
         attention.soft_cap == 0 && !block.feed_forward.gated && !stack.is_parallel() &&
         stack.attention_width() == stack.channels && !stack.unembedding_bias;
}

// [[["global", "local"], 6]]: pairs of what is repeated and how often.
std::vector<std::int64_t> read_windows(const ConfigFields& fields, std::int64_t layers) {
  const std::int64_t window = fields.integer_or("window_size", 256);
  require(window >= 1, ErrorCode::corrupt_data, "{}: 'window_size' must be at least 1, not {}",
          fields.source(), window);
  const JsonLabel label{fields.source() + ": a part of 'attention_types'"};
  const auto refuse = [&](const Json& value) {
    fail(ErrorCode::corrupt_data, "{} must be [[\"global\" or \"local\", …], times], not {}",
         label.text, shown_json(value));
  };
  std::vector<std::int64_t> windows;
  require(fields.has("attention_types"), ErrorCode::corrupt_data,
          "{}: 'attention_types' is missing", fields.source());
  const Json& types = fields.at("attention_types");
  if (!types.is_array()) refuse(types);
  for (const Json& part : types) {
    if (!part.is_array() || part.size() != 2 || !part[0].is_array() || part[0].empty())
      refuse(part);
    const std::int64_t times = json_integer(part[1], label, 0, max_layers);
    for (std::int64_t time = 0; time < times; ++time) {
      for (const Json& kind : part[0]) {
        const std::string& name = json_string(kind, label);
        if (name != "global" && name != "local") refuse(kind);
        windows.push_back(name == "local" ? window : 0);
        require(std::ssize(windows) <= layers, ErrorCode::corrupt_data,
                "{}: 'attention_types' lists more layers than num_layers {}", fields.source(),
                layers);
      }
    }
  }
  require(std::ssize(windows) == layers, ErrorCode::corrupt_data,
          "{}: 'attention_types' lists {} layers, and num_layers is {}", fields.source(),
          windows.size(), layers);
  return windows;
}

StackSpecification read(const ConfigFields& fields) {
  StackSpecification stack;
  stack.vocabulary_size = fields.integer("vocab_size");
  stack.context = fields.integer("max_position_embeddings");
  stack.channels = fields.integer("hidden_size");
  stack.layers = fields.integer_under({"num_layers", "num_hidden_layers"});
  require_config_extents(fields, {{"layers", stack.layers, max_layers}});
  set_heads(fields, fields.has("num_heads") ? "num_heads" : "num_attention_heads", stack);
  AttentionSpecification& attention = stack.block.attention;
  attention.query_bias = false;
  attention.scale = 1;
  std::vector<std::int64_t> windows = read_windows(fields, stack.layers);
  if (std::ranges::any_of(windows, [](std::int64_t window) { return window > 0; })) {
    attention.mask = {.kind = MaskKind::banded, .windows = std::move(windows)};
  }
  stack.block.norm.epsilon = fields.number_or("layer_norm_epsilon", 1e-5F);
  stack.block.feed_forward = {
      .width = fields.integer_or("intermediate_size", 4 * stack.channels),
      .activation = activation_from_name(fields, "activation_function", "gelu_new")};
  stack.initial_deviation = fields.number_or("initializer_range", 0.02F);
  stack.embedding_dropout = fields.number_or("embed_dropout", 0.0F);
  stack.attention_dropout = fields.number_or("attention_dropout", 0.0F);
  stack.residual_dropout = fields.number_or("resid_dropout", 0.0F);
  stack.tied_unembedding = fields.boolean_or("tie_word_embeddings", true);
  stack.end_of_text = read_end_of_text(fields, stack.vocabulary_size);
  return stack;
}

OrderedJson write(const StackSpecification& stack) {
  const std::vector<std::int64_t>& windows = stack.block.attention.mask.windows;
  OrderedJson json;
  json["architectures"] = {"GPTNeoForCausalLM"};
  json["model_type"] = "gpt_neo";
  json["vocab_size"] = stack.vocabulary_size;
  json["max_position_embeddings"] = stack.context;
  json["hidden_size"] = stack.channels;
  json["num_layers"] = stack.layers;
  json["num_heads"] = stack.heads();
  json["intermediate_size"] = stack.feed_forward();
  json["window_size"] = windows.empty() ? 256 : *std::ranges::max_element(windows);
  OrderedJson kinds = OrderedJson::array();
  for (std::int64_t layer = 0; layer < stack.layers; ++layer) {
    kinds.push_back(stack.block.attention.window(layer) > 0 ? "local" : "global");
  }
  json["attention_types"] = OrderedJson::array({OrderedJson::array({kinds, 1})});
  json["attention_layers"] = kinds;  // the same, as other programs read it
  json["activation_function"] = activation_name(stack.block.feed_forward.activation);
  json["layer_norm_epsilon"] = short_decimal(stack.block.norm.epsilon);
  json["initializer_range"] = short_decimal(stack.initial_deviation);
  json["embed_dropout"] = short_decimal(stack.embedding_dropout);
  json["attention_dropout"] = short_decimal(stack.attention_dropout);
  json["resid_dropout"] = short_decimal(stack.residual_dropout);
  json["tie_word_embeddings"] = stack.tied_unembedding;
  json["torch_dtype"] = "float32";
  json["bos_token_id"] = json["eos_token_id"] = written_end_tokens(stack.end_of_text);
  return json;
}

const char* name_of(Role role) {
  switch (role) {
    case Role::token_embedding: return "transformer.wte";
    case Role::position_embedding: return "transformer.wpe";
    case Role::norm_1: return "ln_1";
    case Role::query_key_value: return "attn.attention";
    case Role::attention_output: return "attn.attention.out_proj";
    case Role::norm_2: return "ln_2";
    case Role::up: return "mlp.c_fc";
    case Role::down: return "mlp.c_proj";
    case Role::final_norm: return "transformer.ln_f";
    case Role::unembedding: return "lm_head";
    default: break;
  }
  fail(ErrorCode::internal, "GPT-Neo has no tensor for {}", role_name(role));
}

std::string stem_of(const ParameterId& id) {
  return id.layer < 0 ? name_of(id.role)
                      : fmt::format("transformer.h.{}.{}", id.layer, name_of(id.role));
}

std::vector<StoredTensor> tensors(const StackSpecification& stack) {
  return tensors_with_projections_apart(stack, &stem_of);
}

// The causal mask, which older files contain.
bool is_buffer(std::string_view name) {
  return name.ends_with(".attn.attention.bias") || name.ends_with(".attn.attention.masked_bias");
}

}  // namespace gpt_neo
}  // namespace

const Format& gpt_neo_format() {
  static const Format format = of_decoders({.name = "gpt_neo",
                                            .model_types = {"gpt_neo"},
                                            .prefix = "transformer.",
                                            .expresses = &gpt_neo::expresses,
                                            .read = &gpt_neo::read,
                                            .write = &gpt_neo::write,
                                            .tensors = &gpt_neo::tensors,
                                            .is_buffer = &gpt_neo::is_buffer});
  return format;
}

}  // namespace heed
