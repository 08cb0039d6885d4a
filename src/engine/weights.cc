// Weights of the public facade.
#include "heed/weights.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "engine/facade.h"

namespace heed {
namespace {

// Views of the parameters under TransformerLens's names, in the order of a pass.
class WeightTable {
 public:
  explicit WeightTable(const Transformer& transformer) : config_(transformer.specification()) {
    const StackParameters& all = transformer.parameters().stack();
    add("embed.W_E", all.token_embedding);
    add("pos_embed.W_pos", all.position_embedding);
    add_norm("embed_norm", all.embedding_norm);
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
      add_block("blocks." + std::to_string(layer) + ".", transformer.parameters().block(layer));
    }
    add_norm("ln_final", all.final_norm);
    if (all.unembedding.weight.present()) {
      add("unembed.W_U", transposed(all.unembedding.weight));
      add("unembed.b_U", all.unembedding.bias);
    }
  }

  const std::vector<std::pair<std::string, View<const float>>>& entries() const { return entries_; }

 private:
  void add(std::string name, View<const float> view) {
    if (view.present()) entries_.emplace_back(std::move(name), view);
  }
  void add_norm(const std::string& name, const NormWeights& norm) {
    add(name + ".w", norm.gain);
    add(name + ".b", norm.bias);
  }

  // (O, I) as (I, O).
  static View<const float> transposed(View<const float> weight) {
    return {weight.data(), {weight.extent(1), weight.extent(0)}, {1, weight.stride(0)}};
  }

  // Rows [first, first + heads·D) of a weight (O, C), as (heads, C, D), and of its bias.
  void add_heads(const std::string& letter, const LinearWeights& linear, std::int64_t first,
                 std::int64_t heads, const std::string& block) {
    const std::int64_t size = config_.head_size(), row = linear.weight.stride(0);
    add(block + "attn.W_" + letter, {linear.weight.data() + first * row,
                                     {heads, linear.weight.extent(1), size},
                                     {size * row, 1, row}});
    if (!linear.bias.present()) return;
    add(block + "attn.b_" + letter, {linear.bias.data() + first, {heads, size}, {size, 1}});
  }

  void add_block(const std::string& block, const BlockParameters& parameters) {
    const AttentionSpecification& attention = config_.block.attention;
    const std::int64_t a = attention.query_width(), k = attention.key_value_width();
    const std::int64_t size = attention.head_size;
    add_norm(block + "ln1", parameters.norm_1);
    add_heads("Q", parameters.query_key_value, 0, attention.query_heads, block);
    add_heads("K", parameters.query_key_value, a, attention.key_value_heads, block);
    add_heads("V", parameters.query_key_value, a + k, attention.key_value_heads, block);
    add_norm(block + "attn.q_norm", parameters.query_norm);
    add_norm(block + "attn.k_norm", parameters.key_norm);
    const View<const float> out = parameters.projection.weight;  // (C, A)
    add(block + "attn.W_O",
        {out.data(), {attention.query_heads, size, out.extent(0)}, {size, 1, out.stride(0)}});
    add(block + "attn.b_O", parameters.projection.bias);
    add_norm(block + "ln1_post", parameters.attention_out_norm);
    if (!config_.shares_norm()) add_norm(block + "ln2", parameters.norm_2);
    const auto add_linear = [&](const std::string& name, const LinearWeights& linear) {
      if (!linear.weight.present()) return;
      add(block + "mlp.W_" + name, transposed(linear.weight));
      add(block + "mlp.b_" + name, linear.bias);
    };
    add_linear("gate", parameters.gate);
    add_linear("in", parameters.up);
    add_linear("out", parameters.down);
    add_norm(block + "ln2_post", parameters.feed_forward_out_norm);
  }

  const StackSpecification& config_;
  std::vector<std::pair<std::string, View<const float>>> entries_;
};

SharedView shared(View<const float> view) {
  return {.data = const_cast<float*>(view.data()),
          .shape = {view.shape().begin(), view.shape().end()},
          .strides = {view.strides().begin(), view.strides().begin() + view.rank()},
          .owner = {}};
}

// The weights of one name in all blocks, with a dimension of layers first. Blocks follow each other
// in the arena at one distance.
std::optional<SharedView> of_all_blocks(const WeightTable& table, std::string_view name,
                                        const Parameters& parameters) {
  std::vector<View<const float>> views;
  for (const auto& [known, view] : table.entries()) {
    if (known.starts_with("blocks.") &&
        std::string_view(known).ends_with(fmt::format(".{}", name)) &&
        known == fmt::format("blocks.{}.{}", views.size(), name)) {
      views.push_back(parameters.restored(view));
    }
  }
  if (views.empty()) return std::nullopt;
  SharedView all = shared(views.front());
  const std::int64_t distance = views.size() > 1 ? views[1].data() - views[0].data() : 0;
  for (std::size_t layer = 0; layer < views.size(); ++layer) {
    check(views[layer].data() == all.data + static_cast<std::int64_t>(layer) * distance,
          "blocks of parameters at one distance");
  }
  all.shape.insert(all.shape.begin(), std::ssize(views));
  all.strides.insert(all.strides.begin(), distance);
  return all;
}

}  // namespace

std::vector<std::string> weight_names(const Model& model) {
  std::vector<std::string> names;
  const WeightTable table(ModelAccess::of_one_text(model).transformer);
  for (const auto& entry : table.entries()) names.push_back(entry.first);
  return names;
}

SharedView weight(const Model& model, std::string_view name) {
  const Transformer& transformer = ModelAccess::of_one_text(model).transformer;
  const Parameters& parameters = transformer.parameters();
  const WeightTable table(transformer);
  for (const auto& [known, view] : table.entries()) {
    if (known != name) continue;
    return shared(parameters.restored(view));
  }
  if (std::optional<SharedView> all = of_all_blocks(table, name, parameters)) {
    return *std::move(all);
  }
  const std::vector<std::string> nearest = nearest_names(name, weight_names(model), 3);
  fail(ErrorCode::not_found, "the model has no weight '{}'; did you mean '{}'?", name,
       fmt::join(nearest, "', '"));
}

bool computes_with_views(const Model& model) {
  const Parameters& parameters = ModelAccess::of_one_text(model).transformer.parameters();
  return parameters.prepared_format() == kernels::WeightFormat::f32 && !parameters.is_packed() &&
         !parameters.are_in_blocks();
}

}  // namespace heed
