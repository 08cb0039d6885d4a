#include "model/activations.h"

#include "base/error.h"

namespace heed {
namespace {

// Collects the shapes of views first, and binds the views once the arena is allocated.
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

  std::int64_t bytes() const { return layout_.size() * static_cast<std::int64_t>(sizeof(float)); }

 private:
  struct Wanted {
    View<float>* view;
    std::size_t index;
  };
  ArenaLayout layout_;
  std::vector<Wanted> wanted_;
};

// The layout of the activations of a pass, without memory.
struct ActivationPlan {
  Planner planner;
  std::vector<BlockActivations> blocks;
  View<float> embedding;
  View<float> branch_out;
  std::vector<View<float>> streams;  // output of each block; empty: in place
  NormSaved final_norm_saved;
  View<float> final_norm;

  ActivationPlan(const GptConfig& config, std::int64_t batch, std::int64_t positions, Keep keep) {
    const std::int64_t n = batch * positions, c = config.channels, a = config.attention_width();
    const auto layers = static_cast<std::size_t>(config.layers);
    blocks.resize(keep == Keep::every_block ? layers : 1);
    streams.resize(keep == Keep::one_block ? 0 : layers);
    planner.want(embedding, {n, c});
    planner.want(branch_out, {n, c});
    for (BlockActivations& block : blocks) {
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
    }
    for (View<float>& stream : streams) planner.want(stream, {n, c});
    planner.want(final_norm_saved.mean, {n});
    planner.want(final_norm_saved.reciprocal_deviation, {n});
    planner.want(final_norm, {n, c});
  }
  ActivationPlan(const ActivationPlan&) = delete;  // the planner points at the views
  ActivationPlan& operator=(const ActivationPlan&) = delete;
};

void plan_gradients(Planner& planner, ActivationGradientViews& views, const GptConfig& config,
                    std::int64_t rows) {
  planner.want(views.residual, {rows, config.channels});
  planner.want(views.branch, {rows, config.channels});
  planner.want(views.norm, {rows, config.channels});
  planner.want(views.query_key_value, {rows, 3 * config.attention_width()});
  planner.want(views.mixed_values, {rows, config.attention_width()});
  planner.want(views.neurons, {rows, config.feed_forward});
}

}  // namespace

std::int64_t GptActivations::bytes_needed(const GptConfig& config, std::int64_t batch,
                                          std::int64_t positions, Keep keep) {
  return ActivationPlan(config, batch, positions, keep).planner.bytes();
}

GptActivations::GptActivations(const GptConfig& config, std::int64_t batch, std::int64_t positions,
                               Keep keep)
    : batch_(batch), positions_(positions), keep_(keep) {
  ActivationPlan plan(config, batch, positions, keep);
  arena_ = plan.planner.bind();
  final_norm_saved_ = plan.final_norm_saved;
  final_norm_ = plan.final_norm;
  blocks_ = std::move(plan.blocks);
  blocks_.resize(static_cast<std::size_t>(config.layers), blocks_.front());
  // The stream: each block reads the previous one's output. A single stream can be written in
  // place, because residual_mid lies between residual_pre and residual_post.
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    blocks_[layer].residual_pre = layer == 0 ? plan.embedding : blocks_[layer - 1].residual_post;
    blocks_[layer].residual_post = plan.streams.empty() ? plan.embedding : plan.streams[layer];
    blocks_[layer].branch_out = plan.branch_out;
  }
}

std::int64_t GptActivationGradients::bytes_needed(const GptConfig& config, std::int64_t rows) {
  Planner planner;
  ActivationGradientViews views;
  plan_gradients(planner, views, config, rows);
  return planner.bytes();
}

GptActivationGradients::GptActivationGradients(const GptConfig& config, std::int64_t rows) {
  Planner planner;
  plan_gradients(planner, *this, config, rows);
  arena_ = planner.bind();
}

}  // namespace heed
