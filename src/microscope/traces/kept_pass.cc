#include "microscope/traces/kept_pass.h"

#include <algorithm>

#include "base/error.h"
#include "microscope/traces/text_pass.h"
#include "model/attention.h"
#include "model/block.h"
#include "model/derived_points.h"
#include "model/edited_points.h"
#include "model/head_points.h"
#include "model/input_checks.h"

namespace heed {
namespace {

constexpr std::int64_t halves = 2;  // of a block: attention, feed-forward

Shape branch_shape(const StackSpecification& config, std::int64_t positions) {
  return {config.layers, halves, positions, config.channels};
}

// Records what both halves of each block add to the stream: activations keep the last block's only.
class BranchProbe final : public Probe {
 public:
  BranchProbe(View<float> branches, StopFlag stop) : branches_(branches), stop_(stop) {}

  bool wants(const Point&) const override { return false; }
  void observe(const Point& point, View<const float> values) override {
    require(!stop_requested(stop_), ErrorCode::interrupted, "stopped during a pass");
    if (point.kind != PointKind::attention_out && point.kind != PointKind::feed_forward_out) return;
    const std::int64_t half = point.kind == PointKind::attention_out ? 0 : 1;
    std::ranges::copy(values.span(), branches_[point.layer][half].data());
  }

 private:
  View<float> branches_;
  StopFlag stop_;
};

}  // namespace

KeptPass::KeptPass(const Transformer& gpt, std::vector<std::int32_t> tokens,
                   std::shared_ptr<Editor> editor, Buffers reused, StopFlag stop)
    : gpt_(gpt),
      tokens_(std::move(tokens)),
      given_(std::move(editor)),
      editor_(gpt.editor(), given_.get()),
      buffers_(std::move(reused)) {
  const StackSpecification& config = gpt_.specification();
  require_sums_to_logits(config, "a pass kept for questions");
  require_text_fits(config, tokens_);
  const bool fits =
      buffers_.activations != nullptr && buffers_.activations->positions() == positions() &&
      buffers_.activations->bytes() == static_cast<std::size_t>(StackActivations::bytes_needed(
                                           config, 1, positions(), Keep::every_block)) &&
      buffers_.branches.shape() == branch_shape(config, positions());
  if (!fits) {
    buffers_ = {};
    buffers_.activations =
        std::make_unique<StackActivations>(config, 1, positions(), Keep::every_block);
    buffers_.branches = Tensor<float>(branch_shape(config, positions()));
  }
  BranchProbe probe(buffers_.branches, stop);
  gpt_.forward(token_view(), pass(&probe), *buffers_.activations);
}

std::int64_t KeptPass::bytes_needed(const StackSpecification& config, std::int64_t positions) {
  return StackActivations::bytes_needed(config, 1, positions, Keep::every_block) +
         branch_shape(config, positions).size() * static_cast<std::int64_t>(sizeof(float));
}

Pass KeptPass::pass(Probe* probe) const {
  return {.sequences = {1, positions()}, .probe = probe, .editor = editor_.get()};
}

View<const float> KeptPass::branch(std::int64_t layer, std::int64_t half) const {
  return buffers_.branches.view()[layer][half];
}

kernels::AttentionInput<float> KeptPass::attention_input(std::int64_t layer) const {
  const RotaryRows none;
  const Pass unobserved = pass(nullptr);
  return saved_attention_input(gpt_.layer_pass(layer, unobserved, none),
                               activations().block(layer).attention);
}

void KeptPass::replay(Probe& probe) const {
  const Pass shown = pass(&probe);
  observe_embedding(shown, {.tokens = token_view(),
                            .token_table = gpt_.parameters().token_embedding(),
                            .position_table = gpt_.parameters().position_embedding()});
  for (std::int64_t layer = 0; layer < gpt_.specification().layers; ++layer)
    replay_layer(layer, probe);
  observe_norm(shown, -1, final_norm_points, activations().last_residual(),
               activations().final_norm_saved());
  shown.observe(PointKind::unembedding_in, -1,
                final_norm().reshape({1, positions(), gpt_.specification().channels}));
  observe_logits(shown, gpt_.parameters().unembedding(), final_norm());
}

void KeptPass::replay_layer(std::int64_t layer, Probe& probe) const {
  const Pass shown = pass(&probe);
  const BlockActivations& block = activations().block(layer);
  const auto show = [&](PointKind kind, View<const float> rows) {
    probe.observe({kind, layer}, rows.reshape({1, positions(), rows.extent(1)}));
  };
  show(PointKind::residual_pre, block.residual_pre);
  const RotaryRows none;
  const LayerPass at = gpt_.layer_pass(layer, shown, none);
  observe_head_inputs(at, block.residual_pre);
  observe_norm(shown, layer, norm_1_points, block.residual_pre, block.norm_1_saved);
  const Heads<const float> projected =
      split_heads(at.attention(), 1, View<const float>(block.attention.query_key_value));
  probe.observe({PointKind::query, layer}, projected.query);
  probe.observe({PointKind::key, layer}, projected.key);
  probe.observe({PointKind::value, layer}, projected.value);
  const kernels::AttentionInput<float> input = attention_input(layer);
  if (at.attention().changes_query_and_key()) {
    probe.observe({PointKind::rotated_query, layer}, input.query);
    probe.observe({PointKind::rotated_key, layer}, input.key);
  }
  observe_attention(shown, layer, self_attention_points, input, block.attention.log_sum_exp);
  probe.observe({PointKind::mixed_values, layer},
                View<const float>(block.attention.mixed_values)
                    .reshape({1, positions(), gpt_.specification().heads(),
                              gpt_.specification().head_size()}));
  observe_head_results(at, block.attention.mixed_values);
  show(PointKind::attention_out, attention_out(layer));
  if (!at.stack.is_parallel()) show(PointKind::residual_mid, block.residual_mid);
  observe_norm(shown, layer, norm_2_points, feed_forward_stream(at.stack, block),
               block.norm_2_saved);
  show(PointKind::neurons_pre, block.feed_forward.pre);
  if (at.stack.block.feed_forward.gated) {
    show(PointKind::neurons_linear, block.feed_forward.linear);
  }
  show(PointKind::neurons_post, block.feed_forward.post);
  show(PointKind::feed_forward_out, feed_forward_out(layer));
  show(PointKind::residual_post, block.residual_post);
}

Tensor<float> KeptPass::logits(std::int64_t begin, std::int64_t end) const {
  Tensor<float> logits(Shape{end - begin, gpt_.specification().vocabulary_size});
  gpt_.project(final_norm().slice(0, begin, end), logits, positions());
  return logits;
}

bool KeptPass::edits_pattern(std::int64_t layer, std::int64_t head) const {
  for (const PointKind kind : {PointKind::scores, PointKind::pattern}) {
    if (edits_head({kind, layer}, head)) return true;
  }
  return false;
}

Tensor<float> KeptPass::plane(const Point& point, std::int64_t head) const {
  Tensor<float> plane(Shape{positions(), positions()});
  const kernels::AttentionInput<float> input = attention_input(point.layer);
  if (point.kind == PointKind::scores) {
    scores_plane(pass(nullptr), point.layer, self_attention_points, input, 0, head, plane);
  } else {
    pattern_plane(pass(nullptr), point.layer, self_attention_points, input,
                  activations().block(point.layer).attention.log_sum_exp, 0, head, plane);
  }
  return plane;
}

}  // namespace heed
