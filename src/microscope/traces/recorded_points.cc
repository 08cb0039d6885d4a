// The points of a recorded pass: what is in memory, and what follows from it.
#include "base/error.h"
#include "kernels/kernels.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/recorded_pass.h"
#include "model/block.h"
#include "model/head_points.h"
#include "model/stages.h"

namespace heed {

View<float> RecordedPass::shaped(View<float> rows, StackSite site) const {
  const Sequences& read = sequences(site);
  return rows.present() ? rows.reshape({read.view_batch(), read.view_positions(), rows.extent(1)})
                        : View<float>{};
}

View<float> RecordedPass::stored(const Point& point, Place place) const {
  const StackSpecification& stack = architecture().of(point.site);
  if (!has_point(stack, point.kind)) return {};
  if (point.kind == PointKind::unembedding_in) {
    return shaped(activations(point.site, place).unembedding_in(), point.site);
  }
  return point.layer >= 0 && keeps_points() ? stored_in_block(point, place) : View<float>{};
}

View<const float> RecordedPass::rows(const Point& point) const {
  const View<float> values = stored(point);
  check(values.present() && values.rank() == 3, "rows that are stored");
  return values.reshape({values.extent(0) * values.extent(1), values.extent(2)});
}

View<float> RecordedPass::stored_in_block(const Point& point, Place place) const {
  const StackSpecification& stack = architecture().of(point.site);
  const BlockActivations& block = activations(point.site, place).block(point.layer);
  const auto& streams = stacks_[index(point.site)].streams;
  const std::int64_t batch = sequences(point.site).view_batch();
  const auto borrowed = [&](View<const float> rows) {
    return shaped({const_cast<float*>(rows.data()), rows.shape()}, point.site);
  };
  const auto branch = [&](std::int64_t of_block) {
    return borrowed(of(point.site).added.view()[point.layer][of_block]);
  };
  const auto stream = [&](View<float> rows) {
    const auto kept = streams.find(point.layer);
    return borrowed(kept == streams.end() ? View<const float>(rows) : kept->second.view());
  };
  const auto projected = [&] {
    return split_heads(stack.block.attention, batch, block.attention.query_key_value);
  };
  const auto heads = [&](View<float> rows, std::int64_t first, std::int64_t count,
                         std::int64_t size) {
    return heads_of_sequences(rows, first, count, size, batch);
  };
  const auto& cross = stack.block.cross_attention;
  switch (point.kind) {
    case PointKind::residual_pre: return shaped(block.residual_pre, point.site);
    case PointKind::query: return projected().query;
    case PointKind::key: return projected().key;
    case PointKind::value: return projected().value;
    case PointKind::mixed_values:
      return heads(block.attention.mixed_values, 0, stack.heads(), stack.head_size());
    case PointKind::attention_out: return branch(0);
    case PointKind::residual_mid: return shaped(block.residual_mid, point.site);
    case PointKind::cross_query:
      return heads(block.cross.query, 0, cross->query_heads, cross->head_size);
    case PointKind::cross_key:
      return heads(block.cross.key_value, 0, cross->key_value_heads, cross->head_size);
    case PointKind::cross_value:
      return heads(block.cross.key_value, cross->key_value_width(), cross->key_value_heads,
                   cross->head_size);
    case PointKind::cross_mixed_values:
      return heads(block.cross.mixed_values, 0, cross->query_heads, cross->head_size);
    case PointKind::cross_attention_out: return branch(2);
    case PointKind::residual_cross: return shaped(block.residual_cross, point.site);
    case PointKind::neurons_pre: return shaped(block.feed_forward.pre, point.site);
    case PointKind::neurons_linear: return shaped(block.feed_forward.linear, point.site);
    case PointKind::neurons_post:
      return options_.keep == Keep::every_block ? shaped(block.feed_forward.post, point.site)
                                                : View<float>{};
    case PointKind::feed_forward_out: return branch(1);
    case PointKind::residual_post:
      return stack.is_post_norm() ? shaped(block.residual_post, point.site)
                                  : stream(block.residual_post);
    case PointKind::normalized_residual_post: return stream(block.output);
    default: return {};
  }
}

Tensor<float> RecordedPass::computed(const Point& point) const {
  Capture capture(std::vector<Point>{point});
  if (point.layer >= 0) {
    replay_layer(point.layer, capture, point.site);
  } else {
    replay_embedding(capture, point.site);
    replay_end(capture, point.site);
  }
  return capture.take(point);
}

void RecordedPass::replay(Probe& probe) const {
  for (const OfStack& stack : stacks_) {
    replay_embedding(probe, stack.site);
    for (std::int64_t layer = 0; layer < architecture().of(stack.site).layers; ++layer) {
      replay_layer(layer, probe, stack.site);
    }
    replay_end(probe, stack.site);
  }
}

void RecordedPass::replay_embedding(Probe& probe, StackSite site) const {
  probe.begin_pass(site, sequences(site));
  const Stack stack = model_.stack(site);
  const bool has_sinusoids = stack.sinusoids.present();
  // Rows of texts of different lengths are read as sequences of one token.
  const bool is_ragged = sequences(site).is_ragged();
  const View<const std::int32_t> tokens = token_view(site);
  const std::vector<std::int64_t> positions =
      is_ragged ? sequences(site).row_positions() : std::vector<std::int64_t>();
  kernels::EmbeddingInput<float> input{
      .tokens = is_ragged ? tokens.reshape({tokens.size(), 1}) : tokens,
      .token_table = stack.parameters.token_embedding,
      .position_table = has_sinusoids ? stack.sinusoids : stack.parameters.position_embedding,
      .token_scale = stack.specification.embedding_scale,
      .first_positions = positions};
  TokenRowsRead unpacked;
  if (stack.parameters.token_blocks != nullptr) {
    unpacked.read(*stack.parameters.token_blocks, input);
  }
  observe_embedding(pass(&probe, site), input);
}

void RecordedPass::replay_end(Probe& probe, StackSite site) const {
  const Stack stack = model_.stack(site);
  const StackActivations& kept = activations(site);
  const Pass shown = pass(&probe, site);
  if (stack.specification.final_norm) {
    observe_norm(shown, -1, final_norm_points, kept.last_residual(), kept.final_norm_saved());
  }
  if (!stack.specification.has_unembedding) return;
  const Point read = shown.point(PointKind::unembedding_in, -1);
  shown.observe(read.kind, read.layer, stored(read));
  observe_logits(shown, stack.parameters.unembedding, kept.unembedding_in());
}

void RecordedPass::replay_layer(std::int64_t layer, Probe& probe, StackSite site) const {
  check(keeps_points(), "a pass that keeps its points");
  const Stack stack = model_.stack(site);
  const StackSpecification& config = stack.specification;
  const BlockActivations& block = activations(site).block(layer);
  const Pass shown = pass(&probe, site);
  const RotaryRows none;
  const LayerPass at = stack.layer_pass(layer, shown, none);
  const bool before = config.has_input_norms();
  const bool after = config.is_post_norm();  // norms of sums
  const auto show_output_norm = [&](const NormPoints& points, View<const float> result,
                                    const NormSaved& saved) {
    if (config.has_output_norms()) observe_norm(shown, layer, points, result, saved);
  };
  const auto show = [&](std::initializer_list<PointKind> kinds) {
    for (const PointKind kind : kinds) {
      const Point point{kind, layer, site};
      const View<float> values = stored(point);
      if (values.present()) shown.observe(kind, layer, values);
    }
  };
  const auto show_attention = [&](AttentionKind kind, const AttentionPoints& points) {
    if (kind == AttentionKind::self && config.block.attention.changes_query_and_key()) {
      const auto read =
          attention_heads(config.block.attention, shown.view_batch(), block.attention);
      shown.observe(PointKind::rotated_query, layer, read.query);
      shown.observe(PointKind::rotated_key, layer, read.key);
    }
    observe_attention(shown, layer, points, attended({site, kind}, layer));
  };

  show({PointKind::residual_pre});
  observe_head_inputs(at, block.residual_pre);
  if (before) observe_norm(shown, layer, norm_1_points, block.residual_pre, block.norm_1_saved);
  show({PointKind::query, PointKind::key, PointKind::value});
  show_attention(AttentionKind::self, self_attention_points);
  show({PointKind::mixed_values});
  observe_head_results(at, block.attention.mixed_values);
  show_output_norm(attention_out_norm_points, block.attention_result, block.attention_out_saved);
  show({PointKind::attention_out, PointKind::residual_mid});
  if (after) observe_norm(shown, layer, norm_1_points, block.residual_mid, block.norm_1_saved);

  if (config.block.cross_attention) {
    if (!after) {
      observe_norm(shown, layer, cross_norm_points, block.residual_mid, block.cross_norm_saved);
    }
    show({PointKind::cross_query, PointKind::cross_key, PointKind::cross_value});
    show_attention(AttentionKind::cross, cross_attention_points);
    show(
        {PointKind::cross_mixed_values, PointKind::cross_attention_out, PointKind::residual_cross});
    if (after) {
      observe_norm(shown, layer, cross_norm_points, block.residual_cross, block.cross_norm_saved);
    }
  }

  if (before && !config.shares_norm()) {
    observe_norm(shown, layer, norm_2_points, feed_forward_stream(config, block),
                 block.norm_2_saved);
  }
  show({PointKind::neurons_pre, PointKind::neurons_linear});
  compute_neurons_post({PointKind::neurons_post, layer, site}, probe);
  show_output_norm(feed_forward_out_norm_points, block.feed_forward_result,
                   block.feed_forward_out_saved);
  show({PointKind::feed_forward_out, PointKind::residual_post});
  if (after) {
    observe_norm(shown, layer, norm_of_sum_points, block.residual_post, block.norm_2_saved);
    show({PointKind::normalized_residual_post});
  }
}

// They are kept where backward needs them; elsewhere they follow from what came before.
void RecordedPass::compute_neurons_post(const Point& point, Probe& probe) const {
  if (!probe.wants(point)) return;
  const View<float> kept = stored(point);
  if (kept.present()) return probe.observe(point, kept);
  const FeedForwardSpecification& feed_forward = architecture().of(point.site).block.feed_forward;
  const FeedForwardActivations& saved = activations(point.site).block(point.layer).feed_forward;
  Tensor<float> post(saved.pre.shape());
  if (feed_forward.gated) {
    kernels::gated_activation_forward(saved.pre, saved.linear, feed_forward.activation, post);
  } else {
    kernels::activation_forward(saved.pre, feed_forward.activation, post);
  }
  const View<float> values = shaped(post, point.site);
  pass(&probe, point.site).visit(point.kind, point.layer, values);
}

}  // namespace heed
