// Qwen2ForCausalLM: LLaMA with biases on query, key and value, and windows in its upper layers.
// Qwen3ForCausalLM: LLaMA with RMS norms of each query and key.
#include "formats/llama.h"

namespace heed {
namespace {

// `max_window_layers`, `use_sliding_window`, `sliding_window` and `layer_types`, as Qwen has them.
void read_windows(const ConfigFields& fields, StackSpecification& stack) {
  const std::int64_t window = fields.integer_or("sliding_window", 4096);
  const std::int64_t first = fields.integer_or("max_window_layers", 28);
  std::vector<std::int64_t> windows(static_cast<std::size_t>(stack.layers), 0);
  if (fields.boolean_or("use_sliding_window", false)) {
    for (std::int64_t layer = std::max<std::int64_t>(first, 0); layer < stack.layers; ++layer) {
      windows[static_cast<std::size_t>(layer)] = window;
    }
  }
  if (fields.has("layer_types")) {
    const Json& types = fields.at("layer_types");
    require(types.is_array() && std::ssize(types) == stack.layers, ErrorCode::corrupt_data,
            "{}: 'layer_types' must have one entry for each of {} layers", fields.source(),
            stack.layers);
    for (std::size_t layer = 0; layer < types.size(); ++layer) {
      const bool slides = types[layer] == "sliding_attention";
      require(slides || types[layer] == "full_attention", ErrorCode::unsupported,
              "{}: 'layer_types' has {}; heed knows full_attention and sliding_attention",
              fields.source(), shown_json(types[layer]));
      windows[layer] = slides ? window : 0;
    }
  }
  if (std::ranges::all_of(windows, [](std::int64_t size) { return size == 0; })) return;
  require(window >= 1, ErrorCode::corrupt_data, "{}: 'sliding_window' must be at least 1, not {}",
          fields.source(), window);
  stack.block.attention.mask = {.kind = MaskKind::banded, .windows = windows};
}

// Or none.
bool has_windows(const StackSpecification& stack) {
  std::int64_t size = 0;
  for (const std::int64_t window : stack.block.attention.mask.windows) {
    if (window == 0) continue;
    if (size != 0 && window != size) return false;
    size = window;
  }
  return true;
}

void write_windows(const StackSpecification& stack, OrderedJson& json) {
  const std::vector<std::int64_t>& windows = stack.block.attention.mask.windows;
  json["use_sliding_window"] = !windows.empty();
  if (windows.empty()) {
    json["sliding_window"] = nullptr;
    return;
  }
  json["sliding_window"] = *std::ranges::max_element(windows);
  OrderedJson types = OrderedJson::array();
  std::int64_t first = stack.layers;
  for (std::int64_t layer = stack.layers - 1; layer >= 0; --layer) {
    if (windows[static_cast<std::size_t>(layer)] > 0) first = layer;
  }
  for (const std::int64_t window : windows) {
    types.push_back(window > 0 ? "sliding_attention" : "full_attention");
  }
  json["max_window_layers"] = first;
  json["layer_types"] = types;
}

namespace qwen2 {

bool expresses(const StackSpecification& stack) {
  const AttentionSpecification& attention = stack.block.attention;
  return is_llama_like(stack) && has_windows(stack) && attention.query_bias &&
         !attention.output_bias && !attention.query_key_norm && !stack.block.feed_forward.bias &&
         stack.attention_width() == stack.channels;
}

StackSpecification read(const ConfigFields& fields) {
  StackSpecification stack = read_llama_like(fields);
  stack.block.attention.query_bias = true;
  read_windows(fields, stack);
  return stack;
}

OrderedJson write(const StackSpecification& stack) {
  OrderedJson json = write_llama_like(stack, "qwen2", "Qwen2ForCausalLM");
  json.erase("head_dim");
  write_windows(stack, json);
  return json;
}

}  // namespace qwen2

namespace qwen3 {

bool expresses(const StackSpecification& stack) {
  const AttentionSpecification& attention = stack.block.attention;
  return is_llama_like(stack) && has_windows(stack) && attention.query_key_norm &&
         attention.query_bias == attention.output_bias && !stack.block.feed_forward.bias;
}

StackSpecification read(const ConfigFields& fields) {
  StackSpecification stack = read_llama_like(fields);
  AttentionSpecification& attention = stack.block.attention;
  attention.head_size = fields.integer_or("head_dim", 128);
  attention.query_key_norm = true;
  attention.query_bias = attention.output_bias = fields.boolean_or("attention_bias", false);
  read_windows(fields, stack);
  return stack;
}

OrderedJson write(const StackSpecification& stack) {
  OrderedJson json = write_llama_like(stack, "qwen3", "Qwen3ForCausalLM");
  json["attention_bias"] = stack.block.attention.query_bias;
  write_windows(stack, json);
  return json;
}

}  // namespace qwen3

}  // namespace

const Format& qwen2_format() {
  static const Format format = of_decoders({.name = "qwen2",
                                            .model_types = {"qwen2"},
                                            .prefix = "model.",
                                            .expresses = &qwen2::expresses,
                                            .read = &qwen2::read,
                                            .write = &qwen2::write,
                                            .tensors = &llama_like_tensors,
                                            .is_buffer = &is_llama_like_buffer});
  return format;
}

const Format& qwen3_format() {
  static const Format format = of_decoders({.name = "qwen3",
                                            .model_types = {"qwen3"},
                                            .prefix = "model.",
                                            .expresses = &qwen3::expresses,
                                            .read = &qwen3::read,
                                            .write = &qwen3::write,
                                            .tensors = &llama_like_tensors,
                                            .is_buffer = &is_llama_like_buffer});
  return format;
}

}  // namespace heed
