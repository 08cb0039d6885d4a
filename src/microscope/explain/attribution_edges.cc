#include "microscope/explain/attribution_edges.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/threads.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "kernels/prepared_weight.h"
#include "model/input_checks.h"

namespace heed {
namespace {

// Logits come after all layers.
std::int64_t depth_of(const GraphTarget& target, const StackSpecification& stack) {
  return target.kind == NodeKind::logit ? stack.layers : target.layer;
}

double dot(std::span<const float> a, View<const float> b) {
  const std::span<const float> other = b.span();
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * other[i];
  return sum;
}

}  // namespace

void require_attribution_graph(const Transformer& model) {
  const StackSpecification& stack = model.specification();
  require_predicts_next(stack, "an attribution graph");
  require_sums_to_logits(stack, "an attribution graph");
  require(!stack.block.feed_forward.gated, ErrorCode::unsupported,
          "an attribution graph needs neurons without a gate: what a gated neuron reads is no sum");
}

// Of some targets, the deepest first: at layer l the first of them have a gradient.
class AttributionEdges::Backward {
 public:
  Backward(const AttributionEdges& of, std::span<const GraphTarget> targets,
           std::span<const std::int64_t> order, View<float> edges, std::span<double> biases)
      : of_(of),
        stack_(of.stack_),
        parameters_(of.pass_.model().parameters().stack(StackSite::only)),
        positions_(of.positions_),
        targets_(targets),
        order_(order),
        edges_(edges),
        biases_(biases),
        stream_(Shape{std::ssize(targets) * positions_, stack_.channels}) {}

  void run() {
    begin_at_logits();
    for (std::int64_t layer = stack_.layers - 1; layer >= 0; --layer) {
      if (of_.poll_) of_.poll_();
      const std::int64_t after = count_from(layer + 1), here = count_from(layer);
      if (here == 0) continue;
      if (after > 0) feed_forward(layer, after);
      // Feed-forward of a parallel block reads the stream before attention.
      if (!stack_.is_parallel()) begin_at_neurons(layer, after, here);
      if (const std::int64_t past = stack_.is_parallel() ? after : here; past > 0) {
        attention(layer, past);
      }
      if (stack_.is_parallel()) begin_at_neurons(layer, after, here);
    }
    end_at_tokens();
  }

 private:
  const GraphTarget& target(std::int64_t row) const {
    return targets_[static_cast<std::size_t>(order_[static_cast<std::size_t>(row)])];
  }
  double& bias(std::int64_t row) const {
    return biases_[static_cast<std::size_t>(order_[static_cast<std::size_t>(row)])];
  }
  std::span<float> edges(std::int64_t row) const {
    return edges_[order_[static_cast<std::size_t>(row)]].span();
  }
  // Targets of this depth and deeper ones.
  std::int64_t count_from(std::int64_t depth) const {
    std::int64_t count = 0;
    while (count < std::ssize(targets_) && depth_of(target(count), stack_) >= depth) ++count;
    return count;
  }
  // (T, C), of a target.
  View<float> stream(std::int64_t row) {
    return stream_.view().slice(0, row * positions_, (row + 1) * positions_);
  }
  View<float> streams(std::int64_t rows) { return stream_.view().slice(0, 0, rows * positions_); }

  // Adds to d_x (R, C), the gradient of a norm's rows [begin, …), from that of what it gives.
  void norm_backward(const NormWeights& norm, const NormSaved& saved, std::int64_t begin,
                     View<const float> d_out, View<float> d_x) const {
    const std::int64_t end = begin + d_out.extent(0);
    kernels::constant_scale_norm_backward(
        {.gain = norm.gain,
         .reciprocal_deviation = saved.reciprocal_deviation.slice(0, begin, end),
         .centring = stack_.block.norm.kind == NormKind::layer ? kernels::Centring::mean
                                                               : kernels::Centring::none},
        d_out, d_x);
  }

  // A target that begins with the gradient `d_normed` (C) of a norm's row.
  void begin(std::int64_t row, std::int64_t position, const NormWeights& norm,
             const NormSaved& saved, std::span<const float> d_normed) {
    if (norm.bias.present()) bias(row) += dot(d_normed, norm.bias);
    norm_backward(norm, saved, position,
                  {d_normed.data(), {1, static_cast<std::int64_t>(d_normed.size())}},
                  stream(row).slice(0, position, position + 1));
  }

  void begin_at_logits() {
    const std::int64_t count = count_from(stack_.layers), vocabulary = stack_.vocabulary_size;
    if (count == 0) return;
    const LinearWeights& unembedding = parameters_.unembedding;
    Tensor<float> weights(Shape{count, vocabulary}), d_normed(Shape{count, stack_.channels});
    for (std::int64_t row = 0; row < count; ++row) {
      const std::span<float> own = weights.view()[row].span();
      of_.fill_logit_weights(target(row).number, own);
      if (unembedding.bias.present()) bias(row) += dot(own, unembedding.bias);
    }
    kernels::linear_backward_input(kernels::MultipliedWeight(unembedding).view(), weights,
                                   d_normed);
    for (float& value : d_normed.span()) value *= stack_.logit_scale;
    for (std::int64_t row = 0; row < count; ++row) {
      begin(row, positions_ - 1, parameters_.final_norm, of_.pass_.activations().final_norm_saved(),
            d_normed.view()[row].span());
    }
  }

  void begin_at_neurons(std::int64_t layer, std::int64_t first, std::int64_t end) {
    const BlockParameters& block = parameters_.blocks[static_cast<std::size_t>(layer)];
    const BlockActivations& saved = of_.pass_.activations().block(layer);
    for (std::int64_t row = first; row < end; ++row) {
      const GraphTarget& neuron = target(row);
      if (block.up.bias.present()) bias(row) += block.up.bias(neuron.number);
      begin(row, neuron.position, block.norm_2,
            stack_.shares_norm() ? saved.norm_1_saved : saved.norm_2_saved,
            kernels::multiplied_row(block.up, neuron.number));
    }
  }

  // What neurons give to these targets; no gradient passes them.
  void feed_forward(std::int64_t layer, std::int64_t count) {
    const BlockParameters& block = parameters_.blocks[static_cast<std::size_t>(layer)];
    const std::int64_t size = positions_ * stack_.feed_forward();
    add_bias(block.down.bias, streams(count), count);
    Tensor<float> d_neurons(Shape{count * positions_, stack_.feed_forward()});
    kernels::linear_backward_input(kernels::MultipliedWeight(block.down).view(), streams(count),
                                   d_neurons);
    const float* const values = of_.pass_.activations().block(layer).feed_forward.post.data();
    parallel_items(count, [&](std::int64_t row) {
      float* const found = edges(row).data() + positions_ + layer * size;
      const float* const gradient = d_neurons.data() + row * size;
      for (std::int64_t i = 0; i < size; ++i) found[i] = gradient[i] * values[i];
    });
  }

  void attention(std::int64_t layer, std::int64_t count) {
    const BlockParameters& block = parameters_.blocks[static_cast<std::size_t>(layer)];
    const BlockActivations& saved = of_.pass_.activations().block(layer);
    const AttentionSpecification& heads = stack_.block.attention;
    const std::int64_t rows = count * positions_, width = heads.query_width(),
                       value_width = heads.key_value_width(), first = width + value_width;
    add_bias(block.projection.bias, streams(count), count);
    Tensor<float> d_mixed(Shape{rows, width}), d_value(Shape{rows, value_width}),
        d_normed(Shape{rows, stack_.channels});
    kernels::linear_backward_input(kernels::MultipliedWeight(block.projection).view(),
                                   streams(count), d_mixed);
    for (std::int64_t head = 0; head < heads.query_heads; ++head) {
      values_backward(of_.pass_.plane({PointKind::pattern, layer}, head), head, count, d_mixed,
                      d_value);
    }
    const kernels::MultipliedWeight projections(block.query_key_value);
    kernels::linear_backward_input(projections.view().slice(0, first, first + value_width), d_value,
                                   d_normed);
    if (block.query_key_value.bias.present()) {
      add_bias(block.query_key_value.bias.slice(0, first, first + value_width), d_value, count);
    }
    add_bias(block.norm_1.bias, d_normed, count);
    for (std::int64_t row = 0; row < count; ++row) {
      norm_backward(block.norm_1, saved.norm_1_saved, 0,
                    d_normed.view().slice(0, row * positions_, (row + 1) * positions_),
                    stream(row));
    }
  }

  // d_value[s] += Σ_t pattern[t, s] · d_mixed[t], of a head of each target. A target's gradient is
  // zero after its own position.
  void values_backward(const Tensor<float>& pattern, std::int64_t head, std::int64_t count,
                       const Tensor<float>& d_mixed, Tensor<float>& d_value) const {
    const AttentionSpecification& heads = stack_.block.attention;
    const std::int64_t size = heads.head_size, width = heads.query_width(),
                       value_width = heads.key_value_width();
    const std::int64_t value_head = head / heads.group_size();
    parallel_items(count, [&](std::int64_t row) {
      const float* const from = d_mixed.data() + row * positions_ * width + head * size;
      float* const to = d_value.data() + row * positions_ * value_width + value_head * size;
      for (std::int64_t t = 0; t <= target(row).position; ++t) {
        const float* const d_out = from + t * width;
        if (std::all_of(d_out, d_out + size, [](float value) { return value == 0; })) continue;
        for (std::int64_t s = 0; s <= t; ++s) {
          const float weight = pattern[t * positions_ + s];
          float* const d_own = to + s * value_width;
          for (std::int64_t d = 0; d < size; ++d) d_own[d] += weight * d_out[d];
        }
      }
    });
  }

  // What a bias (O) gives to each target, whose gradients are (count·T, O).
  void add_bias(View<const float> values, View<const float> gradients, std::int64_t count) const {
    if (!values.present()) return;
    parallel_items(count, [&](std::int64_t row) {
      for (std::int64_t t = 0; t <= target(row).position; ++t) {
        bias(row) += dot(values.span(), gradients[row * positions_ + t]);
      }
    });
  }

  void end_at_tokens() {
    const View<const float> embedding = of_.pass_.activations().embedding();
    parallel_items(std::ssize(targets_), [&](std::int64_t row) {
      for (std::int64_t t = 0; t < positions_; ++t) {
        edges(row)[static_cast<std::size_t>(t)] =
            static_cast<float>(dot(stream(row)[t].span(), embedding[t]));
      }
    });
  }

  const AttributionEdges& of_;
  const StackSpecification& stack_;
  const StackParameters& parameters_;
  std::int64_t positions_;
  std::span<const GraphTarget> targets_;
  std::span<const std::int64_t> order_;
  View<float> edges_;
  std::span<double> biases_;
  Tensor<float> stream_;  // (targets · T, C): gradients of the stream
};

AttributionEdges::AttributionEdges(const RecordedPass& pass, LogitBaseline baseline,
                                   std::function<void()> poll)
    : pass_(pass),
      stack_(pass.model().specification()),
      baseline_(baseline),
      poll_(std::move(poll)),
      positions_(pass.positions()) {
  require_attribution_graph(pass.model());
  require(pass.edited_by() == nullptr, ErrorCode::unsupported,
          "an attribution graph needs the model as it is: edits and hooks have no edges");
  const Tensor<float> logits = pass.logits(positions_ - 1, positions_);
  require(kernels::all_finite(logits.span()), ErrorCode::invalid_argument,
          "the model gives logits that are not finite, which have no edges");
  logits_.assign(logits.span().begin(), logits.span().end());
  probabilities_ = probabilities_of(logits_);
}

std::int64_t AttributionEdges::source_count(const StackSpecification& stack,
                                            std::int64_t positions) {
  return positions * (1 + stack.layers * stack.feed_forward());
}

std::int64_t AttributionEdges::bytes_needed(const StackSpecification& stack, std::int64_t positions,
                                            std::int64_t targets) {
  const std::int64_t row =
      2 * stack.channels +
      std::max(stack.feed_forward(),
               stack.attention_width() + stack.block.attention.key_value_width());
  return static_cast<std::int64_t>(sizeof(float)) *
         (targets * positions * row + positions * positions);
}

double AttributionEdges::work(const StackSpecification& stack, std::int64_t positions) {
  const auto width = static_cast<double>(stack.attention_width()),
             values = static_cast<double>(stack.block.attention.key_value_width());
  const double of_row = static_cast<double>(stack.channels) *
                            (static_cast<double>(stack.feed_forward()) + width + values) +
                        width * static_cast<double>(positions) / 2;
  return static_cast<double>(stack.layers * positions) * of_row;
}

std::int64_t AttributionEdges::source_of(const GraphTarget& neuron) const {
  return positions_ + (neuron.layer * positions_ + neuron.position) * stack_.feed_forward() +
         neuron.number;
}

GraphTarget AttributionEdges::neuron_of(std::int64_t source) const {
  const std::int64_t at = source - positions_, width = stack_.feed_forward();
  return {.kind = NodeKind::neuron,
          .layer = at / width / positions_,
          .position = at / width % positions_,
          .number = at % width};
}

float AttributionEdges::value(const GraphTarget& neuron) const {
  return pass_.activations().block(neuron.layer).feed_forward.post(neuron.position, neuron.number);
}

double AttributionEdges::read(const GraphTarget& target) const {
  if (target.kind == NodeKind::neuron) {
    return pass_.activations().block(target.layer).feed_forward.pre(target.position, target.number);
  }
  std::vector<float> weights(logits_.size());
  fill_logit_weights(target.number, weights);
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) sum += double{weights[i]} * logits_[i];
  return sum;
}

void AttributionEdges::fill_logit_weights(std::int64_t token, std::span<float> weights) const {
  const auto own = static_cast<std::size_t>(token);
  if (baseline_ == LogitBaseline::mean) {
    std::ranges::fill(weights, -1.0F / static_cast<float>(weights.size()));
    weights[own] += 1;
    return;
  }
  double others = 0;  // without the difference to 1, which rounding makes of a certain word
  for (std::size_t i = 0; i < probabilities_.size(); ++i) {
    if (i != own) others += probabilities_[i];
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<float>(-probabilities_[i] / std::max(others, 1e-30));
  }
  weights[own] = 1;
}

void AttributionEdges::require_target(const GraphTarget& target) const {
  require(target.kind != NodeKind::token, ErrorCode::invalid_argument,
          "a token reads nothing: expected a neuron or a logit");
  if (target.kind == NodeKind::logit) {
    require(target.number >= 0 && target.number < stack_.vocabulary_size,
            ErrorCode::invalid_argument, "token {} is outside the vocabulary of {}", target.number,
            stack_.vocabulary_size);
    return;
  }
  checked_layer(target.layer, stack_);
  checked_neuron(target.number, stack_);
  require(target.position >= 0 && target.position < positions_, ErrorCode::invalid_argument,
          "position {} is outside the text of {} tokens", target.position, positions_);
}

void AttributionEdges::into(std::span<const GraphTarget> targets, View<float> edges,
                            std::span<double> biases) const {
  std::vector<GraphTarget> own(targets.begin(), targets.end());
  for (GraphTarget& target : own) {
    require_target(target);
    if (target.kind == NodeKind::logit) target.position = positions_ - 1;
  }
  std::vector<std::int64_t> order(own.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](std::int64_t i) {
    return depth_of(own[static_cast<std::size_t>(i)], stack_);
  });
  std::ranges::fill(edges.span(), 0.0F);
  std::ranges::fill(biases, 0.0);
  if (!own.empty()) Backward(*this, own, order, edges, biases).run();
}

}  // namespace heed
