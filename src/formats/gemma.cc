// Gemma2ForCausalLM: norms before and after each branch, a scaled embedding, soft caps of scores
// and logits, and a window in every other layer. Gemma3ForCausalLM, its text: norms of each query
// and key instead of caps, a window in all but each sixth layer, and rotary positions of another
// base there. Gains of norms are stored less 1.
#include <algorithm>
#include <cmath>

#include "base/bf16.h"
#include "formats/llama.h"

namespace heed {
namespace {
namespace gemma {

// By which the embedding is multiplied: √C, in the precision that a config says the model has.
// Published ones are bf16 and compute it so, whatever precision products have.
float embedding_scale(std::int64_t channels) { return std::sqrt(static_cast<float>(channels)); }
float rounded_embedding_scale(std::int64_t channels) {
  return bf16_to_f32(f32_to_bf16(embedding_scale(channels)));
}

StackSpecification usual(StackSpecification stack) {
  stack.block.norm.placement = NormPlacement::pre;
  stack.block.attention.scale = stack.block.attention.soft_cap = 0;
  stack.block.attention.rotary.local_base = 0;
  stack.embedding_scale = 1;
  stack.logit_cap = 0;
  return stack;
}

bool expresses(const StackSpecification& stack) {
  const AttentionSpecification& attention = stack.block.attention;
  std::int64_t widest = 0;
  for (const std::int64_t window : attention.mask.windows) widest = std::max(widest, window);
  const bool has_one_window = std::ranges::all_of(
      attention.mask.windows, [&](std::int64_t window) { return window == 0 || window == widest; });
  return is_llama_like(usual(stack)) && stack.block.norm.placement == NormPlacement::around &&
         has_one_window && attention.query_bias == attention.output_bias &&
         !stack.block.feed_forward.bias &&
         (stack.embedding_scale == embedding_scale(stack.channels) ||
          stack.embedding_scale == rounded_embedding_scale(stack.channels));
}

// Null: none.
float read_cap(const ConfigFields& fields, const char* key, float where_absent) {
  if (!fields.object().contains(key)) return where_absent;
  const float cap = fields.number_or(key, 0.0F);
  require(!fields.has(key) || (std::isfinite(cap) && cap > 0), ErrorCode::corrupt_data,
          "{}: '{}' must be above 0, not {}", fields.source(), key, cap);
  return cap;
}

// `layer_types`, or a window in all but each `pattern`th layer.
void read_windows(const ConfigFields& fields, std::int64_t window, std::int64_t pattern,
                  StackSpecification& stack) {
  require(window >= 1 && pattern >= 1, ErrorCode::corrupt_data,
          "{}: 'sliding_window' and 'sliding_window_pattern' must be at least 1, not {} and {}",
          fields.source(), window, pattern);
  std::vector<std::int64_t> windows;
  if (fields.has("layer_types")) {
    const Json& types = fields.at("layer_types");
    require(types.is_array() && std::ssize(types) == stack.layers, ErrorCode::corrupt_data,
            "{}: 'layer_types' must have one entry for each of {} layers", fields.source(),
            stack.layers);
    for (const Json& type : types) {
      const bool slides = type == "sliding_attention";
      require(slides || type == "full_attention", ErrorCode::unsupported,
              "{}: 'layer_types' has {}; heed knows full_attention and sliding_attention",
              fields.source(), shown_json(type));
      windows.push_back(slides ? window : 0);
    }
  } else {
    for (std::int64_t layer = 0; layer < stack.layers; ++layer) {
      windows.push_back((layer + 1) % pattern == 0 ? 0 : window);
    }
  }
  if (std::ranges::all_of(windows, [](std::int64_t size) { return size == 0; })) return;
  stack.block.attention.mask = {.kind = MaskKind::banded, .windows = std::move(windows)};
}

// Of a config that does not name them.
struct Defaults {
  float score_cap = 0;
  float logit_cap = 0;
  double rotary_base = 10000;
};

// What both have in common.
StackSpecification read(const ConfigFields& fields, const Defaults& defaults) {
  StackSpecification stack = read_llama_like(fields);
  fields.refuse({"use_bidirectional_attention"});
  AttentionSpecification& attention = stack.block.attention;
  attention.head_size = fields.integer_or("head_dim", 256);
  attention.query_bias = attention.output_bias = fields.boolean_or("attention_bias", false);
  const double scalar = fields.real_or("query_pre_attn_scalar", 256);
  require(std::isfinite(scalar) && scalar > 0, ErrorCode::corrupt_data,
          "{}: 'query_pre_attn_scalar' must be above 0, not {}", fields.source(), scalar);
  const float usual_scale = attention.score_scale();
  attention.scale = static_cast<float>(1 / std::sqrt(scalar));
  if (attention.scale == usual_scale) attention.scale = 0;
  attention.soft_cap = read_cap(fields, "attn_logit_softcapping", defaults.score_cap);
  stack.logit_cap = read_cap(fields, "final_logit_softcapping", defaults.logit_cap);
  if (!fields.has("rope_theta")) attention.rotary.base = defaults.rotary_base;
  stack.block.norm.placement = NormPlacement::around;
  stack.block.feed_forward.activation =
      activation_from_name(fields, "hidden_activation", "gelu_pytorch_tanh");
  stack.tied_unembedding = fields.boolean_or("tie_word_embeddings", true);
  const std::string precision =
      fields.text_or("torch_dtype", fields.text_or("dtype", "float32").c_str());
  stack.embedding_scale = precision == "bfloat16" ? rounded_embedding_scale(stack.channels)
                                                  : embedding_scale(stack.channels);
  return stack;
}

OrderedJson write(const StackSpecification& stack, const char* model_type,
                  const char* architecture) {
  const AttentionSpecification& attention = stack.block.attention;
  const auto cap = [](float value) {
    return value > 0 ? OrderedJson(short_decimal(value)) : OrderedJson(nullptr);
  };
  OrderedJson json = write_llama_like(stack, model_type, architecture);
  json["hidden_activation"] = json["hidden_act"];
  json["attention_bias"] = attention.query_bias;
  const double scale = attention.score_scale();
  json["query_pre_attn_scalar"] = short_decimal(static_cast<float>(1 / (scale * scale)));
  json["attn_logit_softcapping"] = cap(attention.soft_cap);
  json["final_logit_softcapping"] = cap(stack.logit_cap);
  const bool is_exact = stack.embedding_scale == embedding_scale(stack.channels);
  json["torch_dtype"] = is_exact ? "float32" : "bfloat16";
  OrderedJson types = OrderedJson::array();
  std::int64_t widest = 0;
  for (std::int64_t layer = 0; layer < stack.layers; ++layer) {
    const std::int64_t window = attention.window(layer);
    types.push_back(window > 0 ? "sliding_attention" : "full_attention");
    widest = std::max(widest, window);
  }
  json["layer_types"] = types;
  json["sliding_window"] = std::max<std::int64_t>(widest, 1);
  return json;
}

std::vector<StoredTensor> tensors(const StackSpecification& stack) {
  std::vector<StoredTensor> stored = llama_like_tensors(stack);
  for (StoredTensor& tensor : stored) {
    const auto& [role, part, layer, site] = tensor.parameter;
    if (is_norm(role)) tensor.storage = Storage::less_one;
    if (role == Role::norm_2) {
      tensor.name = fmt::format("model.layers.{}.pre_feedforward_layernorm.weight", layer);
    }
  }
  return stored;
}

}  // namespace gemma

namespace gemma2 {

bool expresses(const StackSpecification& stack) {
  return gemma::expresses(stack) && !stack.block.attention.query_key_norm &&
         stack.block.attention.rotary.local_base == 0;
}

StackSpecification read(const ConfigFields& fields) {
  StackSpecification stack = gemma::read(fields, {.score_cap = 50, .logit_cap = 30});
  gemma::read_windows(fields, fields.integer_or("sliding_window", 4096), 2, stack);
  return stack;
}

OrderedJson write(const StackSpecification& stack) {
  return gemma::write(stack, "gemma2", "Gemma2ForCausalLM");
}

}  // namespace gemma2

namespace gemma3 {

constexpr double usual_local_base = 10000;

bool expresses(const StackSpecification& stack) {
  const AttentionSpecification& attention = stack.block.attention;
  // A base that no layer turns by cannot be read again as none.
  return gemma::expresses(stack) && attention.query_key_norm && attention.rotary.local_base > 0 &&
         attention.soft_cap == 0;
}

StackSpecification read(const ConfigFields& fields) {
  StackSpecification stack = gemma::read(fields, {.rotary_base = 1e6});
  gemma::read_windows(fields, fields.integer_or("sliding_window", 4096),
                      fields.integer_or("sliding_window_pattern", 6), stack);
  AttentionSpecification& attention = stack.block.attention;
  attention.query_key_norm = true;
  attention.rotary.local_base = fields.real_or("rope_local_base_freq", usual_local_base);
  // Newer files have both kinds of layers in one object.
  const ConfigFields parameters = fields.object_or_empty("rope_parameters");
  if (parameters.has("full_attention") || parameters.has("sliding_attention")) {
    const Json whole{{"rope_parameters", parameters.object_or_empty("full_attention").object()}};
    read_rotary({whole, parameters.source() + ": full_attention"}, stack.context, attention.rotary);
    attention.rotary.local_base = parameters.object_or_empty("sliding_attention")
                                      .real_or("rope_theta", attention.rotary.local_base);
  }
  require(attention.soft_cap == 0, ErrorCode::unsupported,
          "{}: 'attn_logit_softcapping' is {}; heed does not support it in gemma3_text",
          fields.source(), attention.soft_cap);
  return stack;
}

OrderedJson write(const StackSpecification& stack) {
  OrderedJson json = gemma::write(stack, "gemma3_text", "Gemma3ForCausalLM");
  json["rope_local_base_freq"] = stack.block.attention.rotary.local_base;
  return json;
}

}  // namespace gemma3
}  // namespace

const Format& gemma2_format() {
  static const Format format = of_decoders({.name = "gemma2",
                                            .model_types = {"gemma2"},
                                            .prefix = "model.",
                                            .expresses = &gemma2::expresses,
                                            .read = &gemma2::read,
                                            .write = &gemma2::write,
                                            .tensors = &gemma::tensors,
                                            .is_buffer = &is_llama_like_buffer,
                                            .usual = &gemma::usual});
  return format;
}

const Format& gemma3_format() {
  static const Format format = of_decoders({.name = "gemma3",
                                            .model_types = {"gemma3_text"},
                                            .prefix = "model.",
                                            .expresses = &gemma3::expresses,
                                            .read = &gemma3::read,
                                            .write = &gemma3::write,
                                            .tensors = &gemma::tensors,
                                            .is_buffer = &is_llama_like_buffer,
                                            .usual = &gemma::usual});
  return format;
}

}  // namespace heed
