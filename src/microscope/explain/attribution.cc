#include "microscope/explain/attribution.h"

#include "microscope/attention/head_mixture.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/recorded_pass.h"
#include "model/input_checks.h"

namespace heed {
namespace {

using TermPart = AttributionTerm::Part;

// Turns every write to the stream into terms while the pass runs, without storing activations.
class AttributionProbe final : public Probe {
 public:
  // `kept` (null for an unedited pass) records what was edited.
  AttributionProbe(const Transformer& model, const LogitQuestion& question, AttributionUnit unit,
                   std::int64_t position, const RecordedPass* kept = nullptr)
      : model_(model),
        unit_(unit),
        position_(position),
        kept_(kept),
        direction_(logit_direction(model, question)),
        mixture_(model.specification().block.attention) {}

  bool wants(const Point& point) const override {
    switch (point.kind) {
      case PointKind::embedding:
      case PointKind::position:
      case PointKind::residual_pre:
      case PointKind::attention_out:
      case PointKind::residual_mid:
      case PointKind::feed_forward_out:
      case PointKind::final_scale: return true;
      case PointKind::residual_post: return point.layer + 1 == model_.specification().layers;
      case PointKind::query:
      case PointKind::rotated_query:
      case PointKind::key:
      case PointKind::rotated_key:
      case PointKind::value: return by_source();
      case PointKind::mixed_values: return by_head();
      case PointKind::neurons_post: return by_neuron();
      default: return false;
    }
  }

  void observe(const Point& point, View<const float> values) override {
    switch (point.kind) {
      case PointKind::embedding: return write({TermPart::embedding}, stream_row(values));
      case PointKind::position: return write({TermPart::position}, stream_row(values));
      case PointKind::residual_pre:
        // resid_pre of a block is resid_post of the previous block, in the same memory.
        return reach(point.layer > 0 && edits({PointKind::residual_post, point.layer - 1})
                         ? Point{PointKind::residual_post, point.layer - 1}
                         : point,
                     stream_row(values));
      case PointKind::query:
      case PointKind::rotated_query:  // comes later, and replaces the other
        return mixture_.keep_query(values[0][position_]);
        return;
      case PointKind::key:
      case PointKind::rotated_key:
        return mixture_.keep_keys(values[0].slice(0, 0, position_ + 1));
        return;
      case PointKind::value:
        return mixture_.keep_values(values[0].slice(0, 0, position_ + 1));
        return;
      case PointKind::mixed_values: return add_heads(point.layer, values[0][position_]);
      case PointKind::attention_out:
        if (by_head()) {
          return complete(edits(point) ? point : Point{PointKind::head_results, point.layer},
                          stream_row(values));
        }
        return write({TermPart::attention, point.layer}, stream_row(values));
      case PointKind::neurons_post: return add_neurons(point.layer, values[0][position_]);
      case PointKind::feed_forward_out:
        if (by_neuron()) return complete(point, stream_row(values));
        return write({TermPart::feed_forward, point.layer}, stream_row(values));
      case PointKind::residual_mid: return reach(point, stream_row(values));
      case PointKind::residual_post: return reach(point, stream_row(values));
      case PointKind::final_scale: scale_ = values(0, position_, 0); return;
      default: return;
    }
  }

  // Relative to the model's logit.
  std::vector<AttributionTerm> terms(double logit) {
    for (AttributionTerm& term : terms_) term.value /= scale_;
    double sum = bias_ / scale_ + direction_.constant;
    for (const AttributionTerm& term : terms_) sum += term.value;
    rounding_ /= scale_;
    const double rest = logit - sum - rounding_;
    const PointKind edited = edits({PointKind::unembedding_in}) ? PointKind::unembedding_in
                                                                : PointKind::final_normalized;
    if (edits({edited})) {
      terms_.push_back({.part = TermPart::edit, .value = rest, .point = edited});
    } else {
      rounding_ += rest;
    }
    terms_.push_back({.part = TermPart::bias, .value = bias_ / scale_ + direction_.constant});
    if (model_.parameters().prepared_format() != kernels::WeightFormat::f32) {
      terms_.push_back({.part = TermPart::rounding, .value = rounding_});
    }
    return std::move(terms_);
  }

 private:
  bool by_neuron() const { return unit_ == AttributionUnit::neuron; }
  bool by_source() const { return unit_ == AttributionUnit::source; }
  bool by_head() const { return unit_ == AttributionUnit::head || by_source(); }

  std::span<const float> stream_row(View<const float> values) const {
    return values[0][position_].span();
  }

  bool edits(const Point& point) const { return kept_ != nullptr && kept_->edits(point); }

  void write(AttributionTerm term, std::span<const float> written) {
    term.value = direction_.project(written);
    stream_ += term.value;
    terms_.push_back(term);
  }

  // The total of a write that is split into finer parts.
  void complete(const Point& point, std::span<const float> written) {
    const double whole = direction_.project(written);
    stream_ += whole;
    explain(point, whole - parts_);
    parts_ = 0;
  }

  // The stream after all preceding writes.
  void reach(const Point& point, std::span<const float> stream) {
    if (!edits(point)) return;
    const double now = direction_.project(stream);
    explain(point, now - stream_);
    stream_ = now;
  }

  // The difference between a value and the sum of its parts.
  void explain(const Point& point, double rest) {
    if (edits(point)) {
      terms_.push_back(
          {.part = TermPart::edit, .layer = point.layer, .value = rest, .point = point.kind});
    } else {
      rounding_ += rest;
    }
  }

  void add_part(const AttributionTerm& term) {
    terms_.push_back(term);
    parts_ += term.value;
  }

  void add_bias(View<const float> bias) {
    if (!bias.present()) return;
    const double value = direction_.project(bias.span());
    bias_ += value;
    parts_ += value;
  }

  // mixed (H, D)
  void add_heads(std::int64_t layer, View<const float> mixed) {
    const LinearWeights& projection = model_.parameters().block(layer).projection;
    const std::vector<double> read = direction_.through(projection);
    const std::int64_t head_size = mixed.extent(1);
    for (std::int64_t head = 0; head < mixed.extent(0); ++head) {
      const std::span<const double> of_head(read.data() + head * head_size, head_size);
      const bool edited =
          kept_ != nullptr && kept_->edits_head({PointKind::mixed_values, layer}, head);
      if (by_source() && !edited) {
        add_sources(layer, head, of_head);
        continue;
      }
      double value = 0;
      for (std::int64_t d = 0; d < head_size; ++d) value += of_head[d] * mixed(head, d);
      add_part({.part = TermPart::head, .layer = layer, .index = head, .value = value});
    }
    add_bias(projection.bias);
  }

  void add_sources(std::int64_t layer, std::int64_t head, std::span<const double> read) {
    const std::vector<double> pattern = pattern_row(layer, head);
    for (std::int64_t s = 0; s <= position_; ++s) {
      const std::span<const float> value = mixture_.value(s, head);
      double carried = 0;
      for (std::size_t d = 0; d < read.size(); ++d) carried += read[d] * value[d];
      add_part({.part = TermPart::head,
                .layer = layer,
                .index = head,
                .source = s,
                .value = pattern[s] * carried});
    }
  }

  std::vector<double> pattern_row(std::int64_t layer, std::int64_t head) const {
    if (kept_ == nullptr || !kept_->edits_pattern(only_site, layer, head))
      return mixture_.pattern(layer, head);
    const Tensor<float> plane = kept_->plane({PointKind::pattern, layer}, head);
    const std::span<const float> row = plane.view()[position_].span();
    return {row.begin(), row.end()};
  }

  // neurons (F)
  void add_neurons(std::int64_t layer, View<const float> neurons) {
    const LinearWeights& down = model_.parameters().block(layer).down;
    const std::vector<double> read = direction_.through(down);
    for (std::int64_t neuron = 0; neuron < neurons.extent(0); ++neuron) {
      add_part({.part = TermPart::neuron,
                .layer = layer,
                .index = neuron,
                .value = read[neuron] * neurons(neuron)});
    }
    add_bias(down.bias);
  }

  const Transformer& model_;
  AttributionUnit unit_;
  std::int64_t position_;
  const RecordedPass* kept_;
  LogitDirection direction_;
  HeadMixture mixture_;
  std::vector<AttributionTerm> terms_;
  double stream_ = 0;    // direction · all writes to the stream so far
  double parts_ = 0;     // and of the finer parts of the current write
  double bias_ = 0;      // of the biases of split layers
  double rounding_ = 0;  // of unedited values, less the sum of their parts
  double scale_ = 1;
};

// From a row (1, C) of the final norm, multiplied as in the model.
double model_logit(const Transformer& model, View<const float> final_norm_row,
                   const LogitQuestion& question) {
  Tensor<float> logits(Shape{1, model.specification().vocabulary_size});
  model.project(final_norm_row, logits);
  return double{logits[question.token]} - (question.against ? logits[*question.against] : 0.0F);
}

}  // namespace

std::string AttributionTerm::name() const {
  switch (part) {
    case TermPart::embedding: return "embed";
    case TermPart::position: return "pos_embed";
    case TermPart::attention: return fmt::format("{}_attn_out", layer);
    case TermPart::head:
      return source < 0 ? fmt::format("L{}H{}", layer, index)
                        : fmt::format("L{}H{}<{}", layer, index, source);
    case TermPart::feed_forward: return fmt::format("{}_mlp_out", layer);
    case TermPart::neuron: return fmt::format("L{}N{}", layer, index);
    case TermPart::edit: return edit_label({point, layer});
    case TermPart::bias: return "bias";
    case TermPart::rounding: return "rounding";
  }
  return "unknown";
}

double Attribution::sum() const {
  double total = 0;
  for (const AttributionTerm& term : terms) total += term.value;
  return total;
}

Attribution attribute_logit(const Transformer& model, std::span<const std::int32_t> tokens,
                            const LogitQuestion& question, AttributionUnit unit,
                            std::int64_t position) {
  require_sums_to_logits(model.specification(), "logit attribution");
  position = position_in_text(position, std::ssize(tokens));
  // Later positions do not affect it.
  const std::span<const std::int32_t> read = tokens.first(static_cast<std::size_t>(position) + 1);
  if (model.editor() != nullptr) {  // what it changed shows only beside what was written
    return attribute_logit(
        RecordedPass(model, {.source = {}, .target = {read.begin(), read.end()}}), question, unit,
        position);
  }
  AttributionProbe probe(model, question, unit, position);
  const RecordedPass pass(model, {.source = {}, .target = {read.begin(), read.end()}}, {},
                          {.keep = Keep::one_block, .observer = &probe});
  const double logit =
      model_logit(model, pass.final_rows().slice(0, position, position + 1), question);
  return {.question = question,
          .unit = unit,
          .position = position,
          .terms = probe.terms(logit),
          .logit = logit};
}

Attribution attribute_logit(const RecordedPass& pass, const LogitQuestion& question,
                            AttributionUnit unit, std::int64_t position) {
  position = position_in_text(position, pass.positions());
  AttributionProbe probe(pass.model(), question, unit, position, &pass);
  pass.replay(probe);
  const double logit =
      model_logit(pass.model(), pass.final_rows().slice(0, position, position + 1), question);
  return {.question = question,
          .unit = unit,
          .position = position,
          .terms = probe.terms(logit),
          .logit = logit};
}

}  // namespace heed
