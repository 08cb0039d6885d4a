// Weights of the public facade.
#include "heed/weights.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "engine/facade.h"
#include "heed/device.h"

namespace heed {
namespace {

// Views of the parameters under TransformerLens's names, in the order of a pass.
class WeightTable {
 public:
  // Of the processor's parameters, or of those that passes read.
  WeightTable(const StackSpecification& config, const StackParameters& all) : config_(config) {
    add("embed.W_E", all.token_embedding);
    add("pos_embed.W_pos", all.position_embedding);
    add_norm("embed_norm", all.embedding_norm);
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
      add_block("blocks." + std::to_string(layer) + ".", all.blocks[layer]);
    }
    add_norm("ln_final", all.final_norm);
    if (all.unembedding.weight.present()) {
      add("unembed.W_U", transposed(all.unembedding.weight));
      add("unembed.b_U", all.unembedding.bias);
    }
  }

  const std::vector<std::pair<std::string, View<const float>>>& entries() const { return entries_; }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : entries_) names.push_back(entry.first);
    return names;
  }

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

// The weights that a name selects: one, or those of all blocks.
struct NamedWeights {
  std::vector<View<const float>> views;
  bool are_of_all_blocks = false;
};

// Throws Error{not_found}, with the nearest names.
NamedWeights weights_named(const WeightTable& table, std::string_view name) {
  NamedWeights found{.views = {}, .are_of_all_blocks = true};
  for (const auto& [known, view] : table.entries()) {
    if (known == name) return {.views = {view}};
    if (known.starts_with("blocks.") &&
        std::string_view(known).ends_with(fmt::format(".{}", name)) &&
        known == fmt::format("blocks.{}.{}", found.views.size(), name)) {
      found.views.push_back(view);
    }
  }
  if (!found.views.empty()) return found;
  const std::vector<std::string> nearest = nearest_names(name, table.names(), 3);
  fail(ErrorCode::not_found, "the model has no weight '{}'; did you mean '{}'?", name,
       fmt::join(nearest, "', '"));
}

// One weight, or those of all blocks with a dimension of layers first. Blocks follow each other in
// the arena at one distance.
SharedView joined(const NamedWeights& found) {
  const std::vector<View<const float>>& views = found.views;
  SharedView all = shared(views.front());
  if (!found.are_of_all_blocks) return all;
  const std::int64_t distance = views.size() > 1 ? views[1].data() - views[0].data() : 0;
  for (std::size_t layer = 0; layer < views.size(); ++layer) {
    check(views[layer].data() == all.data + static_cast<std::int64_t>(layer) * distance,
          "blocks of parameters at one distance");
  }
  all.shape.insert(all.shape.begin(), std::ssize(views));
  all.strides.insert(all.strides.begin(), distance);
  return all;
}

WeightTable table_of(const Transformer& transformer) {
  return {transformer.specification(), transformer.parameters().stack()};
}

}  // namespace

std::vector<std::string> weight_names(const Model& model) {
  return table_of(ModelAccess::of_one_text(model).transformer).names();
}

SharedView weight(const Model& model, std::string_view name) {
  const Transformer& transformer = ModelAccess::of_one_text(model).transformer;
  NamedWeights found = weights_named(table_of(transformer), name);
  for (View<const float>& view : found.views) view = transformer.parameters().restored(view);
  return joined(found);
}

DeviceView weight_on_device(const Model& model, std::string_view name) {
  const LoadedModel& loaded = ModelAccess::of_one_text(model);
  const Parameters& parameters = loaded.transformer.parameters();
  require(!parameters.device().is_cpu(), ErrorCode::invalid_argument,
          "the model is on the processor, and so is '{}': a model that is loaded with "
          "device=\"cuda\" computes on a GPU",
          name);
  const NamedWeights found =
      weights_named({loaded.transformer.specification(), parameters.placed()}, name);
  for (const View<const float>& view : found.views) {
    require(view.device() == parameters.device(), ErrorCode::unsupported,
            "'{}' is on {} only quantised: load the model in f32 to have it there", name,
            device_name(parameters.device()));
  }
  SharedView all = joined(found);
  return {.data = all.data,
          .shape = std::move(all.shape),
          .strides = std::move(all.strides),
          .owner = {}};
}

bool keeps_f32(const Parameters& parameters) {
  return parameters.prepared_format() == kernels::WeightFormat::f32 && !parameters.is_packed() &&
         !parameters.are_in_blocks();
}

bool computes_with_views(const Model& model) {
  const Parameters& parameters = ModelAccess::of_one_text(model).transformer.parameters();
  return keeps_f32(parameters) && parameters.device().is_cpu();
}

}  // namespace heed
