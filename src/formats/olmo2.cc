// Olmo2ForCausalLM: LLaMA with norms of what branches give, none of what they read, and RMS norms
// of all queries and of all keys of a position together.
#include "formats/llama.h"

namespace heed {
namespace {
namespace olmo2 {

StackSpecification usual(StackSpecification stack) {
  stack.block.norm.placement = NormPlacement::pre;
  stack.block.attention.head_norms = HeadNormExtent::each_head;
  return stack;
}

bool expresses(const StackSpecification& stack) {
  const AttentionSpecification& attention = stack.block.attention;
  return is_llama_like(stack) && stack.block.norm.placement == NormPlacement::output &&
         attention.mask.kind == MaskKind::causal && attention.query_key_norm &&
         attention.head_norms == HeadNormExtent::all_heads &&
         attention.query_bias == attention.output_bias && !stack.block.feed_forward.bias &&
         stack.attention_width() == stack.channels;
}

StackSpecification read(const ConfigFields& fields) {
  StackSpecification stack = read_llama_like(fields);
  stack.block.norm.placement = NormPlacement::output;
  stack.block.norm.epsilon = fields.number_or("rms_norm_eps", 1e-5F);
  AttentionSpecification& attention = stack.block.attention;
  attention.query_key_norm = true;
  attention.head_norms = HeadNormExtent::all_heads;
  attention.query_bias = attention.output_bias = fields.boolean_or("attention_bias", false);
  return stack;
}

OrderedJson write(const StackSpecification& stack) {
  OrderedJson json = write_llama_like(stack, "olmo2", "Olmo2ForCausalLM");
  json.erase("head_dim");
  json["attention_bias"] = stack.block.attention.query_bias;
  return json;
}

}  // namespace olmo2
}  // namespace

const Format& olmo2_format() {
  static const Format format = of_decoders({.name = "olmo2",
                                            .model_types = {"olmo2"},
                                            .prefix = "model.",
                                            .expresses = &olmo2::expresses,
                                            .read = &olmo2::read,
                                            .write = &olmo2::write,
                                            .tensors = &llama_like_tensors,
                                            .is_buffer = &is_llama_like_buffer,
                                            .usual = &olmo2::usual});
  return format;
}

}  // namespace heed
