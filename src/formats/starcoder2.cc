// Starcoder2ForCausalLM: rotary positions and grouped heads as LLaMA has them, layer norms and a
// feed-forward layer as GPT-2 has them.
#include <algorithm>

#include "formats/llama.h"

namespace heed {
namespace {
namespace starcoder2 {

bool expresses(const StackSpecification& stack) {
  const BlockSpecification& block = stack.block;
  const AttentionSpecification& attention = block.attention;
  const std::vector<std::int64_t>& windows = attention.mask.windows;
  const bool has_one_window = std::ranges::all_of(
      windows, [&](std::int64_t window) { return window > 0 && window == windows.front(); });
  return block.norm.kind == NormKind::layer && block.norm.bias &&
         attention.positions == PositionKind::rotary && attention.rotary.fraction == 1 &&
         attention.rotary.pairing == RotaryPairing::halves &&
         attention.mask.kind != MaskKind::full && has_one_window &&
         attention.query_bias == attention.output_bias &&
         attention.query_bias == block.feed_forward.bias && !attention.query_key_norm &&
         attention.scale == 0 && attention.soft_cap == 0 && !block.feed_forward.gated &&
         !stack.is_parallel() && stack.attention_width() == stack.channels &&
         !stack.unembedding_bias;
}

StackSpecification read(const ConfigFields& fields) {
  StackSpecification stack = read_decoder_sizes(fields);
  AttentionSpecification& attention = stack.block.attention;
  attention.key_value_heads = fields.integer_or("num_key_value_heads", 2);
  read_rotary(fields, stack.context, attention.rotary);
  stack.block.norm.epsilon = fields.number_or("norm_epsilon", 1e-5F);
  const bool bias = fields.boolean_or("use_bias", true);
  attention.query_bias = attention.output_bias = bias;
  stack.block.feed_forward = {
      .width = stack.feed_forward(),
      .activation = activation_from_name(fields, "hidden_act", "gelu_pytorch_tanh"),
      .bias = bias};
  stack.embedding_dropout = fields.number_or("embedding_dropout", 0.0F);
  stack.residual_dropout = fields.number_or("residual_dropout", 0.0F);
  stack.tied_unembedding = fields.boolean_or("tie_word_embeddings", true);
  if (!fields.has("sliding_window")) return stack;
  const std::int64_t window = fields.integer("sliding_window");
  require(window >= 1, ErrorCode::corrupt_data, "{}: 'sliding_window' must be at least 1, not {}",
          fields.source(), window);
  attention.mask = {
      .kind = MaskKind::banded,
      .windows = std::vector<std::int64_t>(static_cast<std::size_t>(stack.layers), window)};
  return stack;
}

OrderedJson write(const StackSpecification& stack) {
  const std::vector<std::int64_t>& windows = stack.block.attention.mask.windows;
  OrderedJson json = write_llama_like(stack, "starcoder2", "Starcoder2ForCausalLM");
  json.erase("head_dim");
  json.erase("rms_norm_eps");
  json["norm_epsilon"] = short_decimal(stack.block.norm.epsilon);
  json["use_bias"] = stack.block.attention.query_bias;
  json["sliding_window"] = windows.empty() ? OrderedJson(nullptr) : OrderedJson(windows.front());
  json["embedding_dropout"] = short_decimal(stack.embedding_dropout);
  json["residual_dropout"] = short_decimal(stack.residual_dropout);
  return json;
}

// LLaMA's, but for the names of the feed-forward layer.
std::vector<StoredTensor> tensors(const StackSpecification& stack) {
  std::vector<StoredTensor> stored = llama_like_tensors(stack);
  for (StoredTensor& tensor : stored) {
    const auto& [role, part, layer, site] = tensor.parameter;
    if (role != Role::up && role != Role::down) continue;
    tensor.name =
        fmt::format("model.layers.{}.mlp.{}.{}", layer, role == Role::up ? "c_fc" : "c_proj",
                    part == Part::weight ? "weight" : "bias");
  }
  return stored;
}

}  // namespace starcoder2
}  // namespace

const Format& starcoder2_format() {
  static const Format format = of_decoders({.name = "starcoder2",
                                            .model_types = {"starcoder2"},
                                            .prefix = "model.",
                                            .expresses = &starcoder2::expresses,
                                            .read = &starcoder2::read,
                                            .write = &starcoder2::write,
                                            .tensors = &starcoder2::tensors,
                                            .is_buffer = &is_llama_like_buffer});
  return format;
}

}  // namespace heed
