// MistralForCausalLM: LLaMA with a sliding window in every layer.
#include <algorithm>

#include "formats/llama.h"

namespace heed {
namespace {
namespace mistral {

bool expresses(const StackSpecification& stack) {
  const AttentionSpecification& attention = stack.block.attention;
  const std::vector<std::int64_t>& windows = attention.mask.windows;
  const bool has_one_window = std::ranges::all_of(
      windows, [&](std::int64_t window) { return window > 0 && window == windows.front(); });
  return is_llama_like(stack) && has_one_window && !attention.query_bias &&
         !attention.output_bias && !attention.query_key_norm && !stack.block.feed_forward.bias;
}

StackSpecification read(const ConfigFields& fields) {
  StackSpecification stack = read_llama_like(fields);
  // The window of a config that does not name it; null: none.
  const bool is_named = fields.object().contains("sliding_window");
  if (is_named && !fields.has("sliding_window")) return stack;
  const std::int64_t window = fields.integer_or("sliding_window", 4096);
  require(window >= 1, ErrorCode::corrupt_data, "{}: 'sliding_window' must be at least 1, not {}",
          fields.source(), window);
  stack.block.attention.mask = {
      .kind = MaskKind::banded,
      .windows = std::vector<std::int64_t>(static_cast<std::size_t>(stack.layers), window)};
  return stack;
}

OrderedJson write(const StackSpecification& stack) {
  OrderedJson json = write_llama_like(stack, "mistral", "MistralForCausalLM");
  const std::vector<std::int64_t>& windows = stack.block.attention.mask.windows;
  json["sliding_window"] = windows.empty() ? OrderedJson(nullptr) : OrderedJson(windows.front());
  return json;
}

}  // namespace mistral
}  // namespace

const Format& mistral_format() {
  static const Format format = of_decoders({.name = "mistral",
                                            .model_types = {"mistral"},
                                            .prefix = "model.",
                                            .expresses = &mistral::expresses,
                                            .read = &mistral::read,
                                            .write = &mistral::write,
                                            .tensors = &llama_like_tensors,
                                            .is_buffer = &is_llama_like_buffer});
  return format;
}

}  // namespace heed
