// Qwen2ForCausalLM: LLaMA with biases on query, key and value, and windows in its upper layers.
#include "formats/llama_like.h"

namespace heed {
namespace {
namespace qwen2 {

bool expresses(const StackSpecification& stack) {
  const AttentionSpecification& attention = stack.block.attention;
  return is_llama_like(stack) && has_windows_of_qwen(stack) && attention.query_bias &&
         !attention.output_bias && !attention.query_key_norm && !stack.block.feed_forward.bias &&
         stack.attention_width() == stack.channels;
}

StackSpecification read(const ConfigFields& fields) {
  StackSpecification stack = read_llama_like(fields);
  stack.block.attention.query_bias = true;
  read_windows_of_qwen(fields, stack);
  return stack;
}

OrderedJson write(const StackSpecification& stack) {
  OrderedJson json = write_llama_like(stack, "qwen2", "Qwen2ForCausalLM");
  json.erase("head_dim");
  write_windows_of_qwen(stack, json);
  return json;
}

}  // namespace qwen2
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

}  // namespace heed
