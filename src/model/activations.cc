#include "model/activations.h"

#include "base/error.h"

namespace heed {
namespace {

// Collects places in a layout first and binds views once the arena is allocated.
class Planner {
 public:
  void want(View<float>& view, const Shape& shape) {
    const std::size_t index = layout_.add(std::to_string(layout_.entries().size()), shape);
    wanted_.push_back({&view, index});
  }

  Arena<float> bind() {
    Arena<float> arena(layout_);
    for (const auto& [view, index] : wanted_) *view = arena.view(layout_.entries()[index]);
    return arena;
  }

 private:
  struct Wanted {
    View<float>* view;
    std::size_t index;
  };
  ArenaLayout layout_;
  std::vector<Wanted> wanted_;
};

}  // namespace

GptActivations::GptActivations(const GptConfig& config, std::int64_t batch, std::int64_t positions,
                               Keep keep)
    : batch_(batch), positions_(positions) {
  const std::int64_t n = batch * positions;
  const std::int64_t c = config.channels;
  const std::int64_t a = config.attention_width();
  const std::int64_t planned = keep == Keep::every_block ? config.layers : 1;

  Planner planner;
  blocks_.resize(static_cast<std::size_t>(planned));
  View<float> embedding;
  View<float> branch_out;
  planner.want(embedding, {n, c});
  planner.want(branch_out, {n, c});
  for (BlockActivations& block : blocks_) {
    planner.want(block.norm_1_saved.mean, {n});
    planner.want(block.norm_1_saved.reciprocal_deviation, {n});
    planner.want(block.norm_1, {n, c});
    planner.want(block.attention.query_key_value, {n, 3 * a});
    planner.want(block.attention.mixed_values, {n, a});
    planner.want(block.attention.log_sum_exp, {batch, config.heads, positions});
    planner.want(block.residual_mid, {n, c});
    planner.want(block.norm_2_saved.mean, {n});
    planner.want(block.norm_2_saved.reciprocal_deviation, {n});
    planner.want(block.norm_2, {n, c});
    planner.want(block.feed_forward.pre, {n, config.feed_forward});
    planner.want(block.feed_forward.post, {n, config.feed_forward});
    if (keep == Keep::every_block) planner.want(block.residual_post, {n, c});
  }
  planner.want(final_norm_saved_.mean, {n});
  planner.want(final_norm_saved_.reciprocal_deviation, {n});
  planner.want(final_norm_, {n, c});
  arena_ = planner.bind();

  // The stream: each block reads what the one before wrote. With one block in memory it is written
  // in place, because residual_mid stands between residual_pre and residual_post.
  if (keep == Keep::one_block) {
    blocks_.front().residual_post = embedding;
    blocks_.resize(static_cast<std::size_t>(config.layers), blocks_.front());
  }
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    blocks_[layer].residual_pre = layer == 0 ? embedding : blocks_[layer - 1].residual_post;
    blocks_[layer].branch_out = branch_out;
  }
}

GptActivationGradients::GptActivationGradients(const GptConfig& config, std::int64_t rows) {
  Planner planner;
  planner.want(residual, {rows, config.channels});
  planner.want(branch, {rows, config.channels});
  planner.want(norm, {rows, config.channels});
  planner.want(query_key_value, {rows, 3 * config.attention_width()});
  planner.want(mixed_values, {rows, config.attention_width()});
  planner.want(neurons, {rows, config.feed_forward});
  arena_ = planner.bind();
}

}  // namespace heed
