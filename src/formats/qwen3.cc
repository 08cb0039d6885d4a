// Qwen3ForCausalLM: LLaMA with RMS norms of each query and key.
#include "formats/llama_like.h"

namespace heed {
namespace {
namespace qwen3 {

bool expresses(const StackSpecification& stack) {
  const AttentionSpecification& attention = stack.block.attention;
  return is_llama_like(stack) && has_windows_of_qwen(stack) && attention.query_key_norm &&
         attention.query_bias == attention.output_bias && !stack.block.feed_forward.bias;
}

StackSpecification read(const ConfigFields& fields) {
  StackSpecification stack = read_llama_like(fields);
  AttentionSpecification& attention = stack.block.attention;
  attention.head_size = fields.integer_or("head_dim", 128);
  attention.query_key_norm = true;
  attention.query_bias = attention.output_bias = fields.boolean_or("attention_bias", false);
  read_windows_of_qwen(fields, stack);
  return stack;
}

OrderedJson write(const StackSpecification& stack) {
  OrderedJson json = write_llama_like(stack, "qwen3", "Qwen3ForCausalLM");
  json["attention_bias"] = stack.block.attention.query_bias;
  write_windows_of_qwen(stack, json);
  return json;
}

}  // namespace qwen3
}  // namespace

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
