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
#include "tensor/allocated_bytes.h"

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

void require_attribution_graph(const Transformer& model, const LayerTranscoders& transcoders) {
  const StackSpecification& stack = model.specification();
  require_predicts_next(stack, "an attribution graph");
  require_sums_to_logits(stack, "an attribution graph");
  require(!stack.block.feed_forward.gated || !transcoders.empty(), ErrorCode::unsupported,
          "an attribution graph needs neurons without a gate, or transcoders: what a gated neuron "
          "reads is no sum");
}

GraphSources GraphSources::expected(const StackSpecification& stack, std::int64_t positions,
                                    const LayerTranscoders& transcoders) {
  if (!transcoders.empty()) {
    return {positions, transcoders.expected_features(positions), stack.layers * positions};
  }
  return {.positions = positions, .units = stack.layers * positions * stack.feed_forward()};
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
        stream_(Shape{std::ssize(targets) * positions_, stack_.channels}),
        ones_(Shape{stack_.channels}) {
    ones_.fill(1.0F);
  }

  void run() {
    begin_at_logits();
    for (std::int64_t layer = stack_.layers - 1; layer >= 0; --layer) {
      if (of_.poll_) of_.poll_();
      const std::int64_t after = count_from(layer + 1), here = count_from(layer);
      if (here == 0) continue;
      if (after > 0 && of_.transcoded_ != nullptr) transcoders(layer, after);
      if (after > 0 && of_.transcoded_ == nullptr) feed_forward(layer, after);
      // Feed-forward of a parallel block reads the stream before attention.
      if (!stack_.is_parallel()) begin_at_units(layer, after, here);
      if (const std::int64_t past = stack_.is_parallel() ? after : here; past > 0) {
        attention(layer, past);
      }
      if (stack_.is_parallel()) begin_at_units(layer, after, here);
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

  void begin_at_units(std::int64_t layer, std::int64_t first, std::int64_t end) {
    if (of_.transcoded_ != nullptr) return begin_at_features(layer, first, end);
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

  // Adds to d_x (R, C), of the stream from row `begin` on, the gradient of what the transcoder of a
  // layer reads.
  void transcoder_input_backward(std::int64_t layer, std::int64_t begin, View<const float> d_input,
                                 View<float> d_x) const {
    if (!of_.transcoded_->transcoders().reads_norm(layer)) return kernels::add(d_x, d_input, d_x);
    const BlockActivations& saved = of_.pass_.activations().block(layer);
    NormWeights norm{};
    norm.gain = ones_;
    norm_backward(norm, stack_.shares_norm() ? saved.norm_1_saved : saved.norm_2_saved, begin,
                  d_input, d_x);
  }

  void begin_at_features(std::int64_t layer, std::int64_t first, std::int64_t end) {
    const Dictionary& dictionary = of_.transcoded_->transcoders().of(layer);
    for (std::int64_t row = first; row < end; ++row) {
      const GraphTarget& feature = target(row);
      const FeatureReading reading = feature_reading(dictionary, feature.number);
      bias(row) += reading.bias;
      transcoder_input_backward(
          layer, feature.position,
          {reading.weights.data(), {1, static_cast<std::int64_t>(reading.weights.size())}},
          stream(row).slice(0, feature.position, feature.position + 1));
    }
  }

  // What features, the bias and what is left out give to these targets; no gradient passes
  // features, but that of W_skip does.
  void transcoders(std::int64_t layer, std::int64_t count) {
    const TranscodedPass& pass = *of_.transcoded_;
    const LayerTranscoders& all = pass.transcoders();
    add_bias(all.of(layer).weights().decoder_bias.view(), streams(count), count);
    const View<const float> error = pass.error(layer);
    const std::int64_t errors = positions_ + of_.sources_.units + layer * positions_;
    std::vector<float> d_features;
    for (std::int64_t row = 0; row < count; ++row) {
      for (const LayerTranscoders::Writer& writer : all.writers(layer)) {
        const FeatureRows& active = pass.active(writer.layer);
        d_features.assign(active.values.size(), 0.0F);
        all.of(writer.layer).reconstruct_backward(active, stream(row), d_features, writer.point);
        float* const found = edges(row).data() + positions_ + pass.first(writer.layer);
        for (std::size_t e = 0; e < d_features.size(); ++e) {
          found[e] += d_features[e] * active.values[e];
        }
      }
      for (std::int64_t t = 0; t <= target(row).position; ++t) {
        edges(row)[static_cast<std::size_t>(errors + t)] =
            static_cast<float>(dot(stream(row)[t].span(), error[t]));
      }
    }
    const Tensor<float>& skip = all.of(layer).weights().skip;
    if (!skip.present()) return;
    Tensor<float> d_input(Shape{count * positions_, skip.shape()[1]});
    kernels::linear_backward_input(skip.view(), streams(count), d_input);
    for (std::int64_t row = 0; row < count; ++row) {
      transcoder_input_backward(
          layer, 0, d_input.view().slice(0, row * positions_, (row + 1) * positions_), stream(row));
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
  Tensor<float> ones_;    // (C): the gain of a norm before its gain
};

AttributionEdges::AttributionEdges(const RecordedPass& pass, const LayerTranscoders& transcoders,
                                   LogitBaseline baseline, std::function<void()> poll,
                                   const std::function<void(std::int64_t active)>& after_layer)
    : pass_(pass),
      stack_(pass.model().specification()),
      baseline_(baseline),
      poll_(std::move(poll)),
      positions_(pass.positions()) {
  require_attribution_graph(pass.model(), transcoders);
  require(pass.edited_by() == nullptr, ErrorCode::unsupported,
          "an attribution graph needs the model as it is: edits and hooks have no edges");
  const Tensor<float> logits = pass.logits(positions_ - 1, positions_);
  require(kernels::all_finite(logits.span()), ErrorCode::invalid_argument,
          "the model gives logits that are not finite, which have no edges");
  logits_.assign(logits.span().begin(), logits.span().end());
  probabilities_ = probabilities_of(logits_);
  sources_ = GraphSources::expected(stack_, positions_, transcoders);
  if (transcoders.empty()) return;
  transcoded_ = std::make_unique<TranscodedPass>(transcoders, pass, after_layer);
  sources_.units = transcoded_->features();
}

double AttributionEdges::bytes_needed(const Transformer& model, std::int64_t positions,
                                      std::int64_t targets, std::int64_t logits,
                                      const LayerTranscoders& transcoders) {
  const StackSpecification& stack = model.specification();
  const auto floats = [](double rows, std::int64_t width) {
    return max_allocated_bytes(static_cast<double>(sizeof(float)) * rows *
                               static_cast<double>(width));
  };
  // A matrix that is multiplied, restored for the time being where the weights are prepared.
  const bool is_prepared = model.parameters().prepared_format() != kernels::WeightFormat::f32;
  const auto restored = [&](std::int64_t outputs) {
    return is_prepared ? floats(static_cast<double>(stack.channels), outputs) : 0.0;
  };
  const AttentionSpecification& heads = stack.block.attention;
  const auto length = static_cast<double>(positions);
  const double rows = static_cast<double>(targets) * length, of_logits = double(logits);
  const double at_logits = floats(of_logits, stack.vocabulary_size) +
                           floats(of_logits, stack.channels) + restored(stack.vocabulary_size);
  const double feed_forward = floats(rows, stack.feed_forward()) + restored(stack.feed_forward());
  const double attention =
      floats(rows, heads.query_width()) + floats(rows, heads.key_value_width()) +
      floats(rows, stack.channels) + floats(length, positions) +
      std::max(restored(heads.query_width()), restored(heads.projected_width()));
  double of_units = feed_forward, kept = 0;
  if (!transcoders.empty()) {
    // A target's gradients of features, or those of what W_skip reads.
    const std::int64_t active = transcoders.expected_features(positions);
    of_units = std::max(floats(1, active), floats(rows, stack.channels));
    // What each transcoder reads, its input and error, and the active features, whose rows grow by
    // doubling; while they are found, pre-activations, gates, and two more rows of the stream.
    constexpr double of_feature = 3 * (sizeof(float) + sizeof(std::int32_t));
    kept = static_cast<double>(stack.layers) *
               (3 * floats(length, stack.channels) + 3 * sizeof(std::int64_t) * (length + 1)) +
           of_feature * static_cast<double>(active) + 2 * floats(length, stack.channels);
    double finding = 0;
    for (std::int64_t layer = 0; layer < transcoders.layers(); ++layer) {
      finding = std::max(finding, transcoders.of(layer).bytes_of_encoding(positions));
    }
    kept += finding;
  }
  // Logits of the token after the text, as they are computed, kept and made probabilities.
  const double of_vocabulary =
      static_cast<double>(stack.vocabulary_size) * (2 * sizeof(float) + sizeof(double));
  return floats(rows, stack.channels) + floats(1, stack.channels) +
         std::max({at_logits, of_units, attention}) + kept + of_vocabulary;
}

double AttributionEdges::work(const StackSpecification& stack, std::int64_t positions,
                              const LayerTranscoders& transcoders) {
  const auto width = static_cast<double>(stack.attention_width()),
             values = static_cast<double>(stack.block.attention.key_value_width()),
             layers = static_cast<double>(stack.layers),
             channels = static_cast<double>(stack.channels);
  const double of_units = transcoders.empty()
                              ? layers * channels * static_cast<double>(stack.feed_forward())
                              : transcoders.work_of_edges();
  const double of_row =
      layers * (channels * (width + values) + width * static_cast<double>(positions) / 2);
  return static_cast<double>(positions) * (of_units + of_row);
}

std::int64_t AttributionEdges::source_of(const GraphTarget& unit) const {
  if (transcoded_ != nullptr) return positions_ + transcoded_->number_of(feature_of(unit));
  return positions_ + (unit.layer * positions_ + unit.position) * stack_.feed_forward() +
         unit.number;
}

GraphTarget AttributionEdges::unit_of(std::int64_t source) const {
  if (transcoded_ != nullptr) {
    const TranscodedPass::Feature found = transcoded_->feature(source - positions_);
    return {.kind = NodeKind::feature,
            .layer = found.layer,
            .position = found.position,
            .number = found.number};
  }
  const std::int64_t at = source - positions_, width = stack_.feed_forward();
  return {.kind = NodeKind::neuron,
          .layer = at / width / positions_,
          .position = at / width % positions_,
          .number = at % width};
}

float AttributionEdges::value(const GraphTarget& unit) const {
  if (transcoded_ != nullptr) return transcoded_->activation(feature_of(unit));
  return pass_.activations().block(unit.layer).feed_forward.post(unit.position, unit.number);
}

double AttributionEdges::read(const GraphTarget& target) const {
  if (target.kind == NodeKind::feature) return transcoded_->read(feature_of(target));
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
  const NodeKind unit = transcoded_ != nullptr ? NodeKind::feature : NodeKind::neuron;
  require(target.kind == NodeKind::logit || target.kind == unit, ErrorCode::invalid_argument,
          "a {} is no target: expected a {} or a logit", node_kind_name(target.kind),
          node_kind_name(unit));
  if (target.kind == NodeKind::logit) {
    require(target.number >= 0 && target.number < stack_.vocabulary_size,
            ErrorCode::invalid_argument, "token {} is outside the vocabulary of {}", target.number,
            stack_.vocabulary_size);
    return;
  }
  checked_layer(target.layer, stack_);
  require(target.position >= 0 && target.position < positions_, ErrorCode::invalid_argument,
          "position {} is outside the text of {} tokens", target.position, positions_);
  if (target.kind == NodeKind::neuron) {
    checked_neuron(target.number, stack_);
    return;
  }
  const std::int64_t features =
      transcoded_->transcoders().of(target.layer).specification().features;
  require(target.number >= 0 && target.number < features, ErrorCode::invalid_argument,
          "feature {} does not exist: the transcoder of layer {} has features 0 to {}",
          target.number, target.layer, features - 1);
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
