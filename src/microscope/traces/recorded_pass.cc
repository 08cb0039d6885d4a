#include "microscope/traces/recorded_pass.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/kernels.h"
#include "microscope/traces/capture.h"
#include "model/attention.h"
#include "model/block.h"
#include "model/derived_points.h"
#include "model/head_points.h"
#include "model/input_checks.h"

namespace heed {
namespace {

// Keeps what attention and feed-forward add to the stream: blocks share the memory of that. Passes
// every point on to an observer, for which nothing is computed.
class AddedRows final : public Probe {
 public:
  AddedRows(View<float> branches, Probe* observer) : branches_(branches), observer_(observer) {}

  bool wants(const Point&) const override { return false; }
  void observe(const Point& point, View<const float> values) override {
    if (observer_ != nullptr) observer_->observe(point, values);
    if (point.kind != PointKind::attention_out && point.kind != PointKind::feed_forward_out) return;
    const std::int64_t half = point.kind == PointKind::attention_out ? 0 : 1;
    std::ranges::copy(values.span(), branches_[point.layer][half].data());
  }

 private:
  View<float> branches_;
  Probe* observer_;
};

std::int64_t checked_positions(const Transformer& gpt, std::span<const std::int32_t> tokens,
                               std::int64_t batch) {
  require_tokens(tokens);
  require(batch >= 1 && std::ssize(tokens) % batch == 0, ErrorCode::invalid_argument,
          "{} tokens are not {} sequences of one length", tokens.size(), batch);
  const std::int64_t positions = std::ssize(tokens) / batch;
  for (std::int64_t b = 0; b < batch; ++b) {
    require_text_fits(gpt.specification(), tokens.subspan(static_cast<std::size_t>(b * positions),
                                                          static_cast<std::size_t>(positions)));
  }
  return positions;
}

}  // namespace

RecordedPass::RecordedPass(const Transformer& gpt, Batch batch, Probe* observer)
    : gpt_(gpt),
      input_(std::move(batch)),
      batch_(input_.sequences),
      positions_(checked_positions(gpt, input_.tokens, batch_)),
      activations_(gpt.specification(), batch_, positions_, Keep::points),
      branches_(
          Shape{gpt.specification().layers, 2, batch_ * positions_, gpt.specification().channels}) {
  AddedRows probe(branches_, observer);
  gpt_.forward(token_view(), pass(&probe), activations_);
}

std::int64_t RecordedPass::bytes() const {
  return static_cast<std::int64_t>(activations_.bytes() + branches_.span().size_bytes());
}

Pass RecordedPass::pass(Probe* probe) const {
  return {.sequences = {batch_, positions_}, .token_types = input_.token_types, .probe = probe};
}

View<float> RecordedPass::rows(View<float> all) const {
  return all.reshape({batch_, positions_, all.extent(1)});
}

View<float> RecordedPass::stored(const Point& point) const {
  if (!has_point(gpt_.specification(), point.kind)) return {};
  if (point.kind == PointKind::unembedding_in) return rows(activations_.unembedding_in());
  return point.layer >= 0 ? stored_in_block(point) : View<float>{};
}

View<float> RecordedPass::stored_in_block(const Point& point) const {
  const BlockActivations& block = activations_.block(point.layer);
  const AttentionSpecification& attention = gpt_.specification().block.attention;
  const auto branch = [&](std::int64_t half) {
    const View<const float> added = branches_.view()[point.layer][half];
    return rows({const_cast<float*>(added.data()), added.shape()});
  };
  const auto projected = [&] {
    return split_heads(attention, batch_, block.attention.query_key_value);
  };
  switch (point.kind) {
    case PointKind::residual_pre: return rows(block.residual_pre);
    case PointKind::query: return projected().query;
    case PointKind::key: return projected().key;
    case PointKind::value: return projected().value;
    case PointKind::mixed_values:
      return block.attention.mixed_values.reshape(
          {batch_, positions_, attention.query_heads, attention.head_size});
    case PointKind::attention_out: return branch(0);
    case PointKind::residual_mid: return rows(block.residual_mid);
    case PointKind::neurons_pre: return rows(block.feed_forward.pre);
    case PointKind::neurons_linear: return rows(block.feed_forward.linear);
    case PointKind::feed_forward_out: return branch(1);
    case PointKind::residual_post: return rows(block.residual_post);
    case PointKind::normalized_residual_post: return rows(block.output);
    default: return {};
  }
}

Tensor<float> RecordedPass::computed(const Point& point) const {
  check(!is_plane(point.kind), "scores and patterns are computed tile by tile");
  if (point.kind == PointKind::neurons_post) return neurons_post(point.layer);
  Capture capture(std::vector<Point>{point});
  replay(point, capture);
  return capture.take(point);
}

void RecordedPass::replay(const Point& point, Probe& probe) const {
  const Stack stack = gpt_.stack();
  const StackSpecification& config = gpt_.specification();
  const Pass shown = pass(&probe);
  if (point.layer < 0) {
    observe_embedding(
        shown, {.tokens = token_view(),
                .token_table = stack.parameters.token_embedding,
                .position_table = stack.sinusoids.present() ? stack.sinusoids
                                                            : stack.parameters.position_embedding,
                .token_scale = config.embedding_scale});
    if (config.final_norm) {
      observe_norm(shown, -1, final_norm_points, activations_.last_residual(),
                   activations_.final_norm_saved());
    }
    return observe_logits(shown, stack.parameters.unembedding, activations_.unembedding_in());
  }
  const BlockActivations& block = activations_.block(point.layer);
  const RotaryRows none;
  const LayerPass at = gpt_.layer_pass(point.layer, shown, none);
  observe_head_inputs(at, block.residual_pre);
  const bool after = config.is_post_norm();
  observe_norm(shown, point.layer, norm_1_points, after ? block.residual_mid : block.residual_pre,
               block.norm_1_saved);
  if (after) {
    observe_norm(shown, point.layer, norm_of_sum_points, block.residual_post, block.norm_2_saved);
  } else {
    observe_norm(shown, point.layer, norm_2_points, feed_forward_stream(config, block),
                 block.norm_2_saved);
  }
  if (at.attention().changes_query_and_key()) {
    const kernels::AttentionInput<float> input = attention_input(point.layer);
    probe.observe({PointKind::rotated_query, point.layer}, input.query);
    probe.observe({PointKind::rotated_key, point.layer}, input.key);
  }
  observe_head_results(at, block.attention.mixed_values);
}

kernels::AttentionInput<float> RecordedPass::attention_input(std::int64_t layer) const {
  const RotaryRows none;
  const Pass unobserved = pass(nullptr);
  return saved_attention_input(gpt_.layer_pass(layer, unobserved, none),
                               activations_.block(layer).attention);
}

void RecordedPass::attention_tile(const Point& point, const kernels::AttentionTile& tile,
                                  View<float> out) const {
  check(is_plane(point.kind), "a point of queries by keys");
  const kernels::AttentionInput<float> input = attention_input(point.layer);
  if (point.kind == PointKind::scores) {
    kernels::attention_scores_tile(input, tile, out);
  } else {
    kernels::attention_pattern_tile(input, activations_.block(point.layer).attention.log_sum_exp,
                                    tile, out);
  }
}

Tensor<float> RecordedPass::neurons_post(std::int64_t layer) const {
  const FeedForwardSpecification& feed_forward = gpt_.specification().block.feed_forward;
  const FeedForwardActivations& saved = activations_.block(layer).feed_forward;
  Tensor<float> post(Shape{batch_, positions_, feed_forward.width});
  const View<float> out = post.view().reshape(saved.pre.shape());
  if (feed_forward.gated) {
    kernels::gated_activation_forward(saved.pre, saved.linear, feed_forward.activation, out);
  } else {
    kernels::activation_forward(saved.pre, feed_forward.activation, out);
  }
  return post;
}

Tensor<float> RecordedPass::logits() const {
  Tensor<float> logits(Shape{batch_, positions_, gpt_.specification().vocabulary_size});
  gpt_.project(activations_.unembedding_in(),
               logits.view().reshape({batch_ * positions_, gpt_.specification().vocabulary_size}),
               positions_);
  return logits;
}

}  // namespace heed
