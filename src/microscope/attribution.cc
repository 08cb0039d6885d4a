#include "microscope/attribution.h"

#include "base/error.h"
#include "microscope/head_mixture.h"
#include "microscope/reading.h"

namespace heed {
namespace {

using Part = AttributionTerm::Part;

// Turns each thing that is written to the stream into terms as the pass goes by, and keeps none of
// it.
class AttributionProbe final : public Probe {
 public:
  // `kept` (null: a pass that nobody changes) knows patterns that were edited.
  AttributionProbe(const Gpt& gpt, const LogitQuestion& question, AttributionUnit unit,
                   std::int64_t position, const KeptPass* kept = nullptr)
      : gpt_(gpt),
        unit_(unit),
        position_(position),
        kept_(kept),
        direction_(logit_direction(gpt, question)) {}

  bool wants(const Site& site) const override {
    return site.point == Point::embedding || site.point == Point::position ||
           site.point == Point::final_scale;
  }

  void observe(const Site& site, View<const float> values) override {
    switch (site.point) {
      case Point::embedding: return add({Part::embedding}, stream_row(values));
      case Point::position: return add({Part::position}, stream_row(values));
      case Point::query:
        if (by_source()) mixture_.keep_query(values[0][position_]);
        return;
      case Point::key:
        if (by_source()) mixture_.keep_keys(values[0].slice(0, 0, position_ + 1));
        return;
      case Point::value:
        if (by_source()) mixture_.keep_values(values[0].slice(0, 0, position_ + 1));
        return;
      case Point::mixed_values: return add_heads(site.layer, values[0][position_]);
      case Point::attention_out:
        if (!by_head()) add({Part::attention, site.layer}, stream_row(values));
        return;
      case Point::neurons_post: return add_neurons(site.layer, values[0][position_]);
      case Point::feed_forward_out:
        if (unit_ != AttributionUnit::neuron) {
          add({Part::feed_forward, site.layer}, stream_row(values));
        }
        return;
      case Point::final_scale: scale_ = values(0, position_, 0); return;
      default: return;
    }
  }

  std::vector<AttributionTerm> terms() {
    for (AttributionTerm& term : terms_) term.value /= scale_;
    terms_.push_back({.part = Part::bias, .value = bias_ / scale_ + direction_.constant});
    return std::move(terms_);
  }

 private:
  bool by_source() const { return unit_ == AttributionUnit::source; }
  bool by_head() const { return unit_ == AttributionUnit::head || by_source(); }

  std::span<const float> stream_row(View<const float> values) const {
    return values[0][position_].span();
  }

  void add(AttributionTerm term, std::span<const float> written) {
    term.value = direction_.project(written);
    terms_.push_back(term);
  }

  void add_bias(View<const float> bias) {
    if (bias.present()) bias_ += direction_.project(bias.span());
  }

  // What one unit of each input of a matrix (C, I) that writes to the stream adds: (I).
  std::vector<double> through(View<const float> weight) const {
    std::vector<double> sums(weight.extent(1), 0.0);
    for (std::int64_t c = 0; c < weight.extent(0); ++c) {
      const double along = direction_.direction[c];
      const float* const row = &weight(c, 0);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += along * row[i];
    }
    return sums;
  }

  // mixed (H, D)
  void add_heads(std::int64_t layer, View<const float> mixed) {
    if (!by_head()) return;
    const LinearWeights& projection = gpt_.parameters().block(layer).projection;
    const std::vector<double> read = through(projection.weight);
    const std::int64_t head_size = mixed.extent(1);
    for (std::int64_t head = 0; head < mixed.extent(0); ++head) {
      const std::span<const double> of_head(read.data() + head * head_size, head_size);
      if (by_source()) {
        add_sources(layer, head, of_head);
        continue;
      }
      double value = 0;
      for (std::int64_t d = 0; d < head_size; ++d) value += of_head[d] * mixed(head, d);
      terms_.push_back({.part = Part::head, .layer = layer, .index = head, .value = value});
    }
    add_bias(projection.bias);
  }

  void add_sources(std::int64_t layer, std::int64_t head, std::span<const double> read) {
    const std::vector<double> pattern = pattern_row(layer, head);
    for (std::int64_t s = 0; s <= position_; ++s) {
      const std::span<const float> value = mixture_.value(s, head);
      double carried = 0;
      for (std::size_t d = 0; d < read.size(); ++d) carried += read[d] * value[d];
      terms_.push_back({.part = Part::head,
                        .layer = layer,
                        .index = head,
                        .source = s,
                        .value = pattern[s] * carried});
    }
  }

  std::vector<double> pattern_row(std::int64_t layer, std::int64_t head) const {
    if (kept_ == nullptr || !kept_->edits_pattern(layer, head)) return mixture_.pattern(head);
    const Tensor<float> plane = kept_->plane({Point::pattern, layer}, head);
    const std::span<const float> row = plane.view()[position_].span();
    return {row.begin(), row.end()};
  }

  // neurons (F)
  void add_neurons(std::int64_t layer, View<const float> neurons) {
    if (unit_ != AttributionUnit::neuron) return;
    const LinearWeights& down = gpt_.parameters().block(layer).down;
    const std::vector<double> read = through(down.weight);
    for (std::int64_t neuron = 0; neuron < neurons.extent(0); ++neuron) {
      terms_.push_back({.part = Part::neuron,
                        .layer = layer,
                        .index = neuron,
                        .value = read[neuron] * neurons(neuron)});
    }
    add_bias(down.bias);
  }

  const Gpt& gpt_;
  AttributionUnit unit_;
  std::int64_t position_;
  const KeptPass* kept_;
  LogitDirection direction_;
  HeadMixture mixture_;
  std::vector<AttributionTerm> terms_;
  double bias_ = 0;
  double scale_ = 1;
};

// Rows (1, C) of the final norm through the head.
double model_logit(const Gpt& gpt, View<const float> final_norm_row,
                   const LogitQuestion& question) {
  const LinearWeights& head = gpt.parameters().head();
  const auto logit = [&](std::int32_t token) {
    double sum = head.bias.present() ? head.bias(token) : 0.0F;
    for (std::int64_t c = 0; c < head.weight.extent(1); ++c) {
      sum += static_cast<double>(head.weight(token, c)) * final_norm_row(0, c);
    }
    return sum;
  };
  return logit(question.token) - (question.against ? logit(*question.against) : 0.0);
}

std::int64_t checked_position(std::int64_t position, std::int64_t positions) {
  if (position == -1) position = positions - 1;
  require(position >= 0 && position < positions, ErrorCode::invalid_argument,
          "position {} is not in a text of {} tokens", position, positions);
  return position;
}

}  // namespace

std::string AttributionTerm::name() const {
  switch (part) {
    case Part::embedding: return "embed";
    case Part::position: return "pos_embed";
    case Part::attention: return fmt::format("{}_attn_out", layer);
    case Part::head:
      return source < 0 ? fmt::format("L{}H{}", layer, index)
                        : fmt::format("L{}H{}<{}", layer, index, source);
    case Part::feed_forward: return fmt::format("{}_mlp_out", layer);
    case Part::neuron: return fmt::format("L{}N{}", layer, index);
    case Part::bias: return "bias";
  }
  return "unknown";
}

double Attribution::sum() const {
  double total = 0;
  for (const AttributionTerm& term : terms) total += term.value;
  return total;
}

Attribution attribute_logit(const Gpt& gpt, std::span<const std::int32_t> tokens,
                            const LogitQuestion& question, AttributionUnit unit,
                            std::int64_t position) {
  position = checked_position(position, std::ssize(tokens));
  // What comes after the position cannot change it.
  const std::span<const std::int32_t> read = tokens.first(static_cast<std::size_t>(position) + 1);
  AttributionProbe probe(gpt, question, unit, position);
  const GptActivations activations = read_text(gpt, read, probe);
  const View<const float> final_norm = activations.final_norm();
  return {.question = question,
          .unit = unit,
          .position = position,
          .terms = probe.terms(),
          .logit = model_logit(gpt, final_norm.slice(0, position, position + 1), question)};
}

Attribution attribute_logit(const KeptPass& pass, const LogitQuestion& question,
                            AttributionUnit unit, std::int64_t position) {
  position = checked_position(position, pass.positions());
  AttributionProbe probe(pass.gpt(), question, unit, position, &pass);
  pass.replay(probe);
  return {.question = question,
          .unit = unit,
          .position = position,
          .terms = probe.terms(),
          .logit = model_logit(pass.gpt(), pass.final_norm().slice(0, position, position + 1),
                               question)};
}

}  // namespace heed
