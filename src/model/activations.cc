#include "model/activations.h"

#include <algorithm>

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

  // Binds the views to `arena`, which is allocated again where it is too small.
  void bind(Arena<float>& arena, Device device) {
    if (std::ssize(arena.all()) < layout_.size()) arena = Arena<float>(layout_, device);
    for (const auto& [view, index] : wanted_) *view = arena.view(layout_.entries()[index]);
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
  StackEnds ends;

  ActivationPlan(const StackSpecification& config, std::int64_t batch, std::int64_t positions,
                 Keep keep, std::int64_t memory_rows) {
    const std::int64_t n = batch * positions, c = config.channels, a = config.attention_width();
    const auto layers = static_cast<std::size_t>(config.layers);
    const bool keeps_blocks = keep == Keep::every_block || keep == Keep::points;
    const bool shares = keep == Keep::points;  // what norms and activations compute again
    blocks.resize(keeps_blocks ? layers : 1);
    streams.resize(keep == Keep::one_block ? 0 : layers);
    planner.want(embedding, {n, c});
    if (config.embedding_norm) {
      planner.want(ends.embedding_sum, {n, c});
      want_norm(config, ends.embedding_norm_saved, n);
    }
    planner.want(branch_out, {n, c});
    for (BlockActivations& block : blocks) {
      const bool is_first = &block == &blocks.front();
      const bool norms_stream = config.has_input_norms() || config.is_post_norm();
      if (norms_stream) want_norm(config, block.norm_1_saved, n);
      if (norms_stream && (is_first || !shares || config.is_post_norm())) {
        planner.want(block.norm_1, {n, c});
      }
      plan_heads(config.block.attention, block.attention, n);
      planner.want(block.attention.mixed_values, {n, a});
      planner.want(block.attention.log_sum_exp, {batch, config.heads(), positions});
      if (config.has_output_norms()) {
        want_norm(config, block.attention_out_saved, n);
        planner.want(block.attention_result, {n, c});
        want_norm(config, block.feed_forward_out_saved, n);
        planner.want(block.feed_forward_result, {n, c});
      }
      planner.want(block.residual_mid, {n, c});
      if (config.block.cross_attention) plan_cross(config, block, batch, positions, memory_rows);
      if (norms_stream && !config.shares_norm()) want_norm(config, block.norm_2_saved, n);
      if (config.is_post_norm()) {
        planner.want(block.residual_post, {n, c});
      } else if (norms_stream && !config.shares_norm() && (is_first || !shares)) {
        planner.want(block.norm_2, {n, c});
      }
      planner.want(block.feed_forward.pre, {n, config.feed_forward()});
      if (config.block.feed_forward.gated) {
        planner.want(block.feed_forward.linear, {n, config.feed_forward()});
      }
      if (is_first || !shares) planner.want(block.feed_forward.post, {n, config.feed_forward()});
    }
    for (View<float>& stream : streams) planner.want(stream, {n, c});
    if (config.final_norm) {
      want_norm(config, ends.final_norm_saved, n);
      planner.want(ends.final_norm, {n, c});
    }
    if (config.prediction_head) plan_prediction(config, n);
  }
  ActivationPlan(const ActivationPlan&) = delete;  // the planner points at the views
  ActivationPlan& operator=(const ActivationPlan&) = delete;

 private:
  void want_norm(const StackSpecification& config, NormSaved& saved, std::int64_t n) {
    if (config.block.norm.kind == NormKind::layer) planner.want(saved.mean, {n});
    planner.want(saved.reciprocal_deviation, {n});
  }
  void plan_heads(const AttentionSpecification& attention, AttentionActivations& views,
                  std::int64_t n) {
    planner.want(views.query_key_value, {n, attention.projected_width()});
    if (attention.changes_query_and_key()) {
      planner.want(views.positioned, {n, attention.query_width() + attention.key_value_width()});
    }
    if (attention.query_key_norm) {
      const auto norms = [&](std::int64_t heads) { return heads / attention.heads_of_norm(heads); };
      planner.want(views.query_deviation, {n, norms(attention.query_heads)});
      planner.want(views.key_deviation, {n, norms(attention.key_value_heads)});
    }
  }
  void plan_cross(const StackSpecification& config, BlockActivations& block, std::int64_t batch,
                  std::int64_t positions, std::int64_t memory_rows) {
    const AttentionSpecification& cross = *config.block.cross_attention;
    const std::int64_t n = batch * positions;
    want_norm(config, block.cross_norm_saved, n);
    planner.want(block.cross_norm, {n, config.channels});
    planner.want(block.cross.query, {n, cross.query_width()});
    if (memory_rows > 0) {
      planner.want(block.cross.key_value, {memory_rows, 2 * cross.key_value_width()});
    }
    planner.want(block.cross.mixed_values, {n, cross.query_width()});
    planner.want(block.cross.log_sum_exp, {batch, cross.query_heads, positions});
    planner.want(block.residual_cross, {n, config.channels});
  }
  void plan_prediction(const StackSpecification& config, std::int64_t n) {
    PredictionActivations& head = ends.prediction;
    planner.want(head.pre, {n, config.channels});
    planner.want(head.post, {n, config.channels});
    want_norm(config, head.norm_saved, n);
    planner.want(head.out, {n, config.channels});
  }
};

void plan_gradients(Planner& planner, ActivationGradientViews& views,
                    const StackSpecification& config, std::int64_t rows, std::int64_t memory_rows) {
  std::int64_t mixed = config.attention_width();
  planner.want(views.residual, {rows, config.channels});
  planner.want(views.branch, {rows, config.channels});
  planner.want(views.norm, {rows, config.channels});
  if (config.is_parallel()) planner.want(views.residual_mid, {rows, config.channels});
  if (config.shares_norm()) planner.want(views.shared_norm, {rows, config.channels});
  planner.want(views.query_key_value, {rows, config.block.attention.projected_width()});
  if (const auto& cross = config.block.cross_attention) {
    mixed = std::max(mixed, cross->query_width());
    planner.want(views.cross_query, {rows, cross->query_width()});
    planner.want(views.cross_key_value, {memory_rows, 2 * cross->key_value_width()});
    planner.want(views.memory, {memory_rows, config.channels});
  }
  planner.want(views.mixed_values, {rows, mixed});
  planner.want(views.neurons, {rows, config.feed_forward()});
  if (config.block.feed_forward.gated) planner.want(views.linear, {rows, config.feed_forward()});
}

}  // namespace

std::int64_t StackActivations::bytes_needed(const StackSpecification& config, std::int64_t batch,
                                            std::int64_t positions, Keep keep,
                                            std::int64_t memory_rows) {
  return ActivationPlan(config, batch, positions, keep, memory_rows).planner.bytes();
}

StackActivations::StackActivations(const StackSpecification& config, std::int64_t batch,
                                   std::int64_t positions, Keep keep, std::int64_t memory_rows,
                                   Device device)
    : config_(config), keep_(keep), device_(device) {
  resize(batch, positions, memory_rows);
}

StackActivations StackActivations::on(Device device) const {
  StackActivations copy(config_, batch_, positions_, keep_, memory_rows_, device);
  copy_bytes(copy.arena_.all().data(), arena_.all().data(), copy.bytes());
  return copy;
}

void StackActivations::resize(std::int64_t batch, std::int64_t positions,
                              std::int64_t memory_rows) {
  batch_ = batch;
  positions_ = positions;
  memory_rows_ = memory_rows;
  ActivationPlan plan(config_, batch, positions, keep_, memory_rows);
  plan.planner.bind(arena_, device_);
  ends_ = plan.ends;
  blocks_ = std::move(plan.blocks);
  blocks_.resize(static_cast<std::size_t>(config_.layers), blocks_.front());
  for (BlockActivations& block : blocks_) {
    for (View<float> BlockActivations::*const shared :
         {&BlockActivations::norm_1, &BlockActivations::norm_2}) {
      if (!(block.*shared).present()) block.*shared = blocks_.front().*shared;
    }
    if (!block.feed_forward.post.present()) {
      block.feed_forward.post = blocks_.front().feed_forward.post;
    }
  }
  // The stream: each block reads the previous one's output. A single stream can be written in
  // place, because residual_mid lies between a block's input and its output.
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    BlockActivations& block = blocks_[layer];
    block.residual_pre = layer == 0 ? plan.embedding : blocks_[layer - 1].output;
    block.output = plan.streams.empty() ? plan.embedding : plan.streams[layer];
    (config_.is_post_norm() ? block.norm_2 : block.residual_post) = block.output;
    block.branch_out = plan.branch_out;
    for (View<float> BlockActivations::*const result :
         {&BlockActivations::attention_result, &BlockActivations::feed_forward_result}) {
      if (!(block.*result).present()) block.*result = plan.branch_out;
    }
    if (config_.shares_norm()) {
      block.norm_2 = block.norm_1;
      block.norm_2_saved = block.norm_1_saved;
    }
  }
  if (!config_.embedding_norm) ends_.embedding_sum = plan.embedding;
  if (!ends_.final_norm.present()) ends_.final_norm = last_residual();
}

std::int64_t ActivationGradients::bytes_needed(const StackSpecification& config, std::int64_t rows,
                                               std::int64_t memory_rows) {
  Planner planner;
  ActivationGradientViews views;
  plan_gradients(planner, views, config, rows, memory_rows);
  return planner.bytes();
}

ActivationGradients::ActivationGradients(const StackSpecification& config, std::int64_t rows,
                                         std::int64_t memory_rows, Device device)
    : device_(device) {
  resize(config, rows, memory_rows);
}

void ActivationGradients::resize(const StackSpecification& config, std::int64_t rows,
                                 std::int64_t memory_rows) {
  Planner planner;
  plan_gradients(planner, *this, config, rows, memory_rows);
  planner.bind(arena_, device_);
}

}  // namespace heed
