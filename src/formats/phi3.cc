// Phi3ForCausalLM: LLaMA with one matrix for query, key and value and one for gate and up, rotary
// positions on a part of each head, and a window in every layer.
#include <algorithm>

#include "formats/llama.h"

namespace heed {
namespace {
namespace phi3 {

bool expresses(const StackSpecification& stack) {
  const AttentionSpecification& attention = stack.block.attention;
  const std::vector<std::int64_t>& windows = attention.mask.windows;
  const bool has_one_window = std::ranges::all_of(
      windows, [&](std::int64_t window) { return window > 0 && window == windows.front(); });
  StackSpecification whole = stack;
  whole.block.attention.rotary.fraction = 1;
  return is_llama_like(whole) && has_one_window && !attention.query_bias &&
         !attention.output_bias && !attention.query_key_norm && !stack.block.feed_forward.bias &&
         stack.attention_width() == stack.channels;
}

StackSpecification read(const ConfigFields& fields) {
  StackSpecification stack = read_llama_like(fields);
  fields.refuse({"attention_bias"});
  stack.block.norm.epsilon = fields.number_or("rms_norm_eps", 1e-5F);
  stack.embedding_dropout = fields.number_or("embd_pdrop", 0.0F);
  stack.residual_dropout = fields.number_or("resid_pdrop", 0.0F);
  if (!fields.has("sliding_window")) return stack;
  const std::int64_t window = fields.integer("sliding_window");
  require(window >= 1, ErrorCode::corrupt_data, "{}: 'sliding_window' must be at least 1, not {}",
          fields.source(), window);
  stack.block.attention.mask = {
      .kind = MaskKind::banded,
      .windows = std::vector<std::int64_t>(static_cast<std::size_t>(stack.layers), window)};
  return stack;
}

// By its older key; of longrope, other programs take nothing but the factors beside it.
void write_scaling(OrderedJson& scaling) {
  scaling["type"] = scaling["rope_type"];
  if (scaling["type"] != "longrope") return;
  for (const char* const key : {"rope_type", "factor", "original_max_position_embeddings"}) {
    scaling.erase(key);
  }
}

OrderedJson write(const StackSpecification& stack) {
  const std::vector<std::int64_t>& windows = stack.block.attention.mask.windows;
  OrderedJson json = write_llama_like(stack, "phi3", "Phi3ForCausalLM");
  json.erase("head_dim");
  json["sliding_window"] = windows.empty() ? OrderedJson(nullptr) : OrderedJson(windows.front());
  json["partial_rotary_factor"] = stack.block.attention.rotary.fraction;
  json["embd_pdrop"] = short_decimal(stack.embedding_dropout);
  json["resid_pdrop"] = short_decimal(stack.residual_dropout);
  if (json.contains("rope_scaling")) write_scaling(json["rope_scaling"]);
  return json;
}

// LLaMA's, with what stands below each other joined.
std::vector<StoredTensor> tensors(const StackSpecification& stack) {
  const std::int64_t f = stack.feed_forward();
  std::vector<StoredTensor> stored;
  for (StoredTensor& tensor : llama_like_tensors(stack)) {
    const auto& [role, part, layer, site] = tensor.parameter;
    if (role == Role::query_key_value) {
      if (tensor.first_row > 0) continue;
      tensor.name = fmt::format("model.layers.{}.self_attn.qkv_proj.weight", layer);
      tensor.shape = {stack.block.attention.projected_width(), stack.channels};
    } else if (role == Role::gate || role == Role::up) {
      tensor.name = fmt::format("model.layers.{}.mlp.gate_up_proj.weight", layer);
      tensor.joined_rows = 2 * f;
      tensor.first_joined_row = role == Role::gate ? 0 : f;
    }
    stored.push_back(std::move(tensor));
  }
  return stored;
}

}  // namespace phi3
}  // namespace

const Format& phi3_format() {
  static const Format format = of_decoders({.name = "phi3",
                                            .model_types = {"phi3"},
                                            .prefix = "model.",
                                            .expresses = &phi3::expresses,
                                            .read = &phi3::read,
                                            .write = &phi3::write,
                                            .tensors = &phi3::tensors,
                                            .is_buffer = &is_llama_like_buffer});
  return format;
}

}  // namespace heed
