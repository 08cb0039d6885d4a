#include "microscope/attention/induction.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "microscope/intervene/intervention.h"

namespace heed {
namespace {

// (2R) of tokens: R drawn evenly, all different where the vocabulary has so many, twice.
std::vector<std::int32_t> repeated_sequence(const GptConfig& config, std::int64_t length,
                                            std::uint64_t seed, std::uint64_t index) {
  RandomStream random(seed, index);
  const bool different = length < config.vocabulary_size;  // the end-of-text token is left out
  std::vector<std::int32_t> tokens;
  while (std::ssize(tokens) < length) {
    const auto token =
        static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(config.vocabulary_size)));
    if (token == config.end_of_text) continue;
    if (different && std::ranges::find(tokens, token) != tokens.end()) continue;
    tokens.push_back(token);
  }
  tokens.insert(tokens.end(), tokens.begin(), tokens.begin() + length);
  return tokens;
}

// Sums the weights of every head that induction is made of.
class InductionProbe final : public Probe {
 public:
  InductionProbe(const GptConfig& config, std::int64_t length)
      : heads_(config.heads),
        length_(length),
        induction_(static_cast<std::size_t>(config.layers * config.heads), 0.0),
        previous_(induction_) {}

  bool wants(const Site& site) const override { return site.point == Point::pattern; }

  void observe(const Site& site, View<const float> values) override {
    if (site.point != Point::pattern) return;
    for (std::int64_t head = 0; head < heads_; ++head) {
      const View<const float> pattern = values[0][head];
      const auto place = static_cast<std::size_t>(site.layer * heads_ + head);
      double induction = 0;
      double previous = 0;
      for (std::int64_t t = length_; t < 2 * length_; ++t) induction += pattern(t, t - length_ + 1);
      for (std::int64_t t = 1; t < 2 * length_; ++t) previous += pattern(t, t - 1);
      induction_[place] += induction / static_cast<double>(length_);
      previous_[place] += previous / static_cast<double>(2 * length_ - 1);
    }
  }

  std::vector<HeadScore> means(const std::vector<double>& sums, std::int64_t sequences) const {
    std::vector<HeadScore> scores;
    for (std::int64_t i = 0; i < std::ssize(sums); ++i) {
      scores.push_back({i / heads_, i % heads_, sums[i] / static_cast<double>(sequences)});
    }
    return scores;
  }
  const std::vector<double>& induction() const { return induction_; }
  const std::vector<double>& previous() const { return previous_; }

 private:
  std::int64_t heads_;
  std::int64_t length_;
  std::vector<double> induction_;  // (L, H)
  std::vector<double> previous_;
};

// Σ of the losses of the tokens [begin, end), each from what comes before it.
double loss_of(View<const float> logits, const std::vector<std::int32_t>& tokens,
               std::int64_t begin, std::int64_t end) {
  double sum = 0;
  for (std::int64_t t = begin; t < end; ++t) {
    const std::span<const float> row = logits[t - 1].span();
    const double largest = *std::ranges::max_element(row);
    double total = 0;
    for (const float logit : row) total += std::exp(logit - largest);
    sum += largest + std::log(total) - row[static_cast<std::size_t>(tokens[t])];
  }
  return sum;
}

const HeadScore& best(const std::vector<HeadScore>& scores) {
  check(!scores.empty(), "a model has heads");
  return *std::ranges::max_element(scores, {}, &HeadScore::score);
}

}  // namespace

const HeadScore& InductionMeasure::best_induction() const { return best(induction); }
const HeadScore& InductionMeasure::best_previous() const { return best(previous); }

InductionMeasure measure_induction(const Gpt& gpt, const InductionOptions& options) {
  const GptConfig& config = gpt.config();
  const std::int64_t length =
      options.length > 0 ? options.length : std::min<std::int64_t>(config.context / 2, 64);
  require(length >= 2 && 2 * length <= config.context, ErrorCode::invalid_argument,
          "a sequence of {} tokens, twice, does not fit the model's context of {}", length,
          config.context);
  require(config.vocabulary_size >= 2, ErrorCode::invalid_argument,
          "a vocabulary of {} token has nothing to repeat", config.vocabulary_size);
  require(options.sequences >= 1, ErrorCode::invalid_argument, "{} sequences are too few",
          options.sequences);
  const std::int64_t positions = 2 * length;
  const GptActivations activations(config, 1, positions, Keep::one_block);
  Tensor<float> logits(Shape{positions, config.vocabulary_size});
  InductionProbe probe(config, length);
  InductionMeasure measure{.length = length};
  for (std::int64_t i = 0; i < options.sequences; ++i) {
    const std::vector<std::int32_t> tokens =
        repeated_sequence(config, length, options.seed, static_cast<std::uint64_t>(i));
    gpt.forward({tokens.data(), {1, positions}},
                {.positions = positions, .probe = &probe, .editor = options.editor}, activations);
    gpt.project(activations.final_norm(), logits);
    measure.first_half_loss += loss_of(logits, tokens, 1, length);
    measure.repeated_half_loss += loss_of(logits, tokens, length + 1, positions);
  }
  const auto counted = static_cast<double>(options.sequences * (length - 1));
  measure.first_half_loss /= counted;
  measure.repeated_half_loss /= counted;
  measure.induction = probe.means(probe.induction(), options.sequences);
  measure.previous = probe.means(probe.previous(), options.sequences);
  return measure;
}

InductionCircuit measure_induction_circuit(const Gpt& gpt, const InductionOptions& options) {
  InductionCircuit circuit{.whole = measure_induction(gpt, options)};
  const auto loss_with = [&](Intervention intervention) {
    std::vector<Intervention> one;
    one.push_back(std::move(intervention));
    Interventions editor(gpt.config(), std::move(one));
    InductionOptions changed = options;
    changed.editor = &editor;
    return measure_induction(gpt, changed).repeated_half_loss;
  };
  const HeadScore& head = circuit.whole.best_induction();
  circuit.loss_without_induction_head =
      loss_with({{Point::mixed_values, head.layer}, {.heads = {head.head}}, SetZero{}});

  const HeadScore& previous = circuit.whole.best_previous();
  CutEdges cut;
  for (std::int64_t t = 1; t < 2 * circuit.whole.length; ++t) cut.edges.push_back({t, t - 1});
  circuit.loss_without_previous_edges =
      loss_with({{Point::pattern, previous.layer}, {.heads = {previous.head}}, std::move(cut)});
  return circuit;
}

Jump largest_jump(const std::vector<ScoreAtStep>& scores) {
  require(scores.size() >= 2, ErrorCode::invalid_argument,
          "cannot find a jump in {} measurements: expected at least two", scores.size());
  Jump jump{scores[0], scores[1]};
  for (std::size_t i = 1; i < scores.size(); ++i) {
    if (scores[i].score - scores[i - 1].score > jump.after.score - jump.before.score) {
      jump = {scores[i - 1], scores[i]};
    }
  }
  return jump;
}

}  // namespace heed
