#include "microscope/attention/induction.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "microscope/attention/visible_keys.h"
#include "microscope/intervene/intervention.h"
#include "model/input_checks.h"

namespace heed {
namespace {

constexpr double min_standard_errors = 5;
constexpr std::int64_t min_sequences = 8;
constexpr double min_times_uniform = 2;
constexpr std::uint64_t shuffle_stream = std::uint64_t{1} << 32;  // beyond all sequences

// (2R) of tokens: R drawn uniformly, all different where the vocabulary has so many, twice.
std::vector<std::int32_t> repeated_sequence(const StackSpecification& config, std::int64_t length,
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

// The same tokens with the second half in another order: nothing is repeated but single tokens.
std::vector<std::int32_t> shuffled_sequence(std::vector<std::int32_t> tokens, std::uint64_t seed,
                                            std::uint64_t index) {
  RandomStream random(seed, shuffle_stream + index);
  const std::size_t length = tokens.size() / 2;
  for (std::size_t i = length - 1; i > 0; --i) {
    std::swap(tokens[length + i], tokens[length + random.below(i + 1)]);
  }
  return tokens;
}

// Of each layer (L), the mean over the queries [begin, end) of the weight of uniform attention on
// the key `back` positions before.
std::vector<double> uniform_scores(const StackSpecification& config, std::int64_t begin,
                                   std::int64_t end, std::int64_t back) {
  std::vector<double> scores;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    double sum = 0;
    for (std::int64_t t = begin; t < end; ++t) {
      const VisibleKeys keys = visible_keys(config.block.attention, layer, t, end);
      if (keys.contains(t - back)) sum += 1.0 / static_cast<double>(keys.count());
    }
    scores.push_back(sum / static_cast<double>(end - begin));
  }
  return scores;
}

// The scores of every head on one sequence.
class InductionProbe final : public Probe {
 public:
  InductionProbe(const StackSpecification& config, std::int64_t length)
      : heads_(config.heads()),
        length_(length),
        induction_(static_cast<std::size_t>(config.layers * config.heads()), 0.0),
        previous_(induction_) {}

  bool wants(const Point& point) const override { return point.kind == PointKind::pattern; }

  void observe(const Point& point, View<const float> values) override {
    for (std::int64_t head = 0; head < heads_; ++head) {
      const View<const float> pattern = values[0][head];
      const auto index = static_cast<std::size_t>(point.layer * heads_ + head);
      double induction = 0;
      double previous = 0;
      for (std::int64_t t = length_; t < 2 * length_; ++t) induction += pattern(t, t - length_ + 1);
      for (std::int64_t t = 1; t < 2 * length_; ++t) previous += pattern(t, t - 1);
      induction_[index] = induction / static_cast<double>(length_);
      previous_[index] = previous / static_cast<double>(2 * length_ - 1);
    }
  }

  const std::vector<double>& induction() const { return induction_; }
  const std::vector<double>& previous() const { return previous_; }

 private:
  std::int64_t heads_;
  std::int64_t length_;
  std::vector<double> induction_;  // (L, H)
  std::vector<double> previous_;
};

// The scores of every head and those of their control, over all sequences.
class ScoreStatistics {
 public:
  explicit ScoreStatistics(const StackSpecification& config)
      : heads_(config.heads()), sums_(static_cast<std::size_t>(config.layers * config.heads())) {}

  void add(std::size_t head, double score, double control) {
    Sums& sums = sums_[head];
    const double difference = score - control;
    sums.score += score;
    sums.control += control;
    sums.difference += difference;
    sums.squared += difference * difference;
  }

  // uniform (L)
  std::vector<HeadScore> result(std::int64_t sequences, const std::vector<double>& uniform,
                                bool controlled) const {
    const auto n = static_cast<double>(sequences);
    std::vector<HeadScore> scores;
    for (std::int64_t i = 0; i < std::ssize(sums_); ++i) {
      const Sums& sums = sums_[static_cast<std::size_t>(i)];
      HeadScore head{.layer = i / heads_,
                     .head = i % heads_,
                     .score = sums.score / n,
                     .control = sums.control / n,
                     .uniform = uniform[static_cast<std::size_t>(i / heads_)]};
      const double mean = sums.difference / n;
      if (sequences > 1) {
        const double variance = std::max(0.0, sums.squared / n - mean * mean) * n / (n - 1);
        head.standard_error = std::sqrt(variance / n);
      }
      head.is_significant = controlled && sequences >= min_sequences &&
                            mean > min_standard_errors * head.standard_error &&
                            head.score > min_times_uniform * head.uniform;
      scores.push_back(head);
    }
    return scores;
  }

 private:
  struct Sums {
    double score = 0;
    double control = 0;
    double difference = 0;
    double squared = 0;
  };
  std::int64_t heads_;
  std::vector<Sums> sums_;  // (L, H)
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

std::optional<HeadScore> best_significant(const std::vector<HeadScore>& scores) {
  std::optional<HeadScore> found;
  for (const HeadScore& head : scores) {
    if (head.is_significant && (!found || head.score > found->score)) found = head;
  }
  return found;
}

}  // namespace

const HeadScore& InductionMeasure::best_induction() const { return best(induction); }
const HeadScore& InductionMeasure::best_previous() const { return best(previous); }
std::optional<HeadScore> InductionMeasure::induction_head() const {
  return best_significant(induction);
}
std::optional<HeadScore> InductionMeasure::previous_head() const {
  return best_significant(previous);
}

InductionMeasure measure_induction(const Transformer& model, const InductionOptions& options) {
  require_predicts_next(model.specification(), "induction");
  const StackSpecification& config = model.specification();
  const std::int64_t length =
      options.length > 0 ? options.length : std::min<std::int64_t>(config.context / 2, 64);
  require(length >= 2 && 2 * length <= config.context, ErrorCode::invalid_argument,
          "a sequence of {} tokens, twice, does not fit the model's context of {}", length,
          config.context);
  require(config.vocabulary_size >= 2, ErrorCode::invalid_argument,
          "a vocabulary of {} token has nothing to repeat", config.vocabulary_size);
  require(options.sequences >= 1 && options.sequences <= max_induction_sequences,
          ErrorCode::invalid_argument, "the number of sequences must be between 1 and {}, not {}",
          max_induction_sequences, options.sequences);
  const std::int64_t positions = 2 * length;
  const StackActivations activations(config, 1, positions, Keep::one_block, 0, model.device());
  Tensor<float> logits(Shape{positions, config.vocabulary_size});
  const auto uniform_induction = uniform_scores(config, length, positions, length - 1);
  const auto uniform_previous = uniform_scores(config, 1, positions, 1);
  InductionMeasure measure{.length = length,
                           .uniform_induction = *std::ranges::max_element(uniform_induction),
                           .uniform_previous = *std::ranges::max_element(uniform_previous)};
  InductionProbe probe(config, length);
  const auto run = [&](const std::vector<std::int32_t>& tokens) {
    require(!stop_requested(options.stop), ErrorCode::interrupted,
            "stopped while measuring induction");
    model.forward({tokens.data(), {1, positions}},
                  {.sequences = {1, positions}, .probe = &probe, .editor = options.editor},
                  activations);
  };
  ScoreStatistics induction(config);
  ScoreStatistics previous(config);
  for (std::int64_t i = 0; i < options.sequences; ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    const std::vector<std::int32_t> tokens = repeated_sequence(config, length, options.seed, index);
    std::vector<double> control(probe.induction().size(), 0.0);
    if (options.control) {
      run(shuffled_sequence(tokens, options.seed, index));
      control = probe.induction();
    }
    run(tokens);
    model.project(activations.final_norm(), logits);
    measure.first_half_loss += loss_of(logits, tokens, 1, length);
    measure.repeated_half_loss += loss_of(logits, tokens, length + 1, positions);
    for (std::size_t head = 0; head < control.size(); ++head) {
      induction.add(head, probe.induction()[head], control[head]);
      previous.add(head, probe.previous()[head],
                   uniform_previous[head / static_cast<std::size_t>(config.heads())]);
    }
  }
  const auto counted = static_cast<double>(options.sequences * (length - 1));
  measure.first_half_loss /= counted;
  measure.repeated_half_loss /= counted;
  measure.induction = induction.result(options.sequences, uniform_induction, options.control);
  measure.previous = previous.result(options.sequences, uniform_previous, true);
  return measure;
}

InductionCircuit measure_induction_circuit(const Transformer& model,
                                           const InductionOptions& options) {
  require_predicts_next(model.specification(), "the circuit of induction");
  require_sums_to_logits(model.specification(), "the circuit of induction");
  InductionCircuit circuit{.whole = measure_induction(model, options)};
  const auto loss_with = [&](Intervention intervention) {
    std::vector<Intervention> one;
    one.push_back(std::move(intervention));
    Interventions editor(model.specification(), std::move(one));
    InductionOptions changed = options;
    changed.editor = &editor;
    changed.control = false;
    return measure_induction(model, changed).repeated_half_loss;
  };
  if (const auto head = circuit.whole.induction_head()) {
    circuit.loss_without_induction_head =
        loss_with({{PointKind::mixed_values, head->layer}, {.heads = {head->head}}, SetZero{}});
  }
  if (const auto previous = circuit.whole.previous_head()) {
    CutEdges cut;
    for (std::int64_t t = 1; t < 2 * circuit.whole.length; ++t) cut.edges.push_back({t, t - 1});
    circuit.loss_without_previous_edges = loss_with(
        {{PointKind::pattern, previous->layer}, {.heads = {previous->head}}, std::move(cut)});
  }
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
