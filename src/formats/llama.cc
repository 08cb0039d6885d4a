// LlamaForCausalLM.
#include "formats/llama_like.h"

namespace heed {
namespace {
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
