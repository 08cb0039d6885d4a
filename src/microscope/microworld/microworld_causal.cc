#include "microscope/microworld/microworld_causal.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "microscope/microworld/edge_cutter.h"
#include "microscope/microworld/marked_story.h"
#include "microworld/microworld.h"
#include "model/input_checks.h"

namespace heed {
namespace {

// A position whose prediction is measured, and the edges cut for it.
struct Case {
  std::int64_t position = 0;  // the true token is at position + 1
  std::vector<EdgeBlock> cut;
  std::vector<EdgeBlock> control;
};

struct StoryCases {
  std::vector<std::int32_t> tokens;
  std::vector<Case> cases;
};

// As many tokens directly before a range; nothing if they would include <|endoftext|>.
std::vector<EdgeBlock> elsewhere_before(const TokenRange& queries, std::int64_t place,
                                        std::int64_t count) {
  if (place - count < 1) return {};
  return {{queries, {place - count, place}}};
}

StoryCases noun_cases(const MarkedStory& story) {
  StoryCases cases{story.tokens, {}};
  for (const MarkedStory::Noun& noun : story.nouns) {
    Case next{.position = noun.at.last()};
    std::int64_t first = noun.at.begin;
    std::int64_t count = 0;
    for (const TokenRange& adjective : noun.adjectives) {
      next.cut.push_back({noun.at, adjective});
      first = std::min(first, adjective.begin);
      count += adjective.end - adjective.begin;
    }
    next.control = elsewhere_before(noun.at, first, count);
    if (!next.control.empty()) cases.cases.push_back(std::move(next));
  }
  return cases;
}

// The queries whose edges to the clue are cut.
enum class Asking { last_word, all_words };

StoryCases clue_cases(const MarkedStory& story, Asking asking) {
  StoryCases cases{story.tokens, {}};
  if (!story.mystery) return cases;
  const auto& [clue, answer] = *story.mystery;
  const bool all = asking == Asking::all_words;
  const std::int64_t count = clue.end - clue.begin;
  const TokenRange elsewhere{clue.end, clue.end + count};
  if (elsewhere.end >= answer.begin) return cases;
  const TokenRange last{answer.begin - 1, answer.begin};
  const TokenRange after_clue{clue.end, answer.begin};
  const TokenRange after_elsewhere{elsewhere.end, answer.begin};
  cases.cases.push_back({.position = last.begin,
                         .cut = {{all ? after_clue : last, clue}},
                         .control = {{all ? after_elsewhere : last, elsewhere}}});
  return cases;
}

class CausalExamination {
 public:
  explicit CausalExamination(const Gpt& gpt) : gpt_(gpt) {}

  void add(const StoryCases& story, CausalEffect& effect) const {
    if (story.cases.empty()) return;
    std::vector<EdgeBlock> cut, control;
    for (const Case& each : story.cases) {
      cut.insert(cut.end(), each.cut.begin(), each.cut.end());
      control.insert(control.end(), each.control.begin(), each.control.end());
    }
    EdgeCutter cutter(cut), elsewhere(control);
    read(story, nullptr, effect.probability, effect.accuracy);
    read(story, &cutter, effect.probability_cut, effect.accuracy_cut);
    read(story, &elsewhere, effect.probability_control, effect.accuracy_control);
    effect.cases += std::ssize(story.cases);
  }

 private:
  void read(const StoryCases& story, Editor* editor, double& probability, double& accuracy) const {
    const std::int64_t positions = std::ssize(story.tokens) - 1;
    const std::int64_t vocabulary = gpt_.config().vocabulary_size;
    const GptActivations activations(gpt_.config(), 1, positions, Keep::one_block);
    gpt_.forward({story.tokens.data(), {1, positions}}, {.positions = positions, .editor = editor},
                 activations);
    Tensor<float> logits(Shape{1, vocabulary});
    for (const Case& each : story.cases) {
      gpt_.project(activations.final_norm().slice(0, each.position, each.position + 1), logits);
      const std::int32_t truth = story.tokens[static_cast<std::size_t>(each.position + 1)];
      const double largest = *std::ranges::max_element(logits.span());
      double sum = 0;
      for (const float logit : logits.span()) sum += std::exp(logit - largest);
      probability += std::exp(logits[truth] - largest) / sum;
      accuracy += logits[truth] == static_cast<float>(largest) ? 1 : 0;
    }
  }

  const Gpt& gpt_;
};

void take_mean(CausalEffect& effect) {
  for (double* sum : {&effect.probability, &effect.probability_cut, &effect.probability_control,
                      &effect.accuracy, &effect.accuracy_cut, &effect.accuracy_control}) {
    *sum /= static_cast<double>(effect.cases);  // NaN without cases
  }
}

}  // namespace

MicroworldCausality check_microworld_causality(const Gpt& gpt, const Tokenizer& tokenizer,
                                               const MicroworldCheckOptions& options) {
  require_predicts_next(gpt.config(), "causes in the microworld");
  require(options.stories >= 1, ErrorCode::invalid_argument, "{} stories: expected at least one",
          options.stories);
  require(tokenizer.vocabulary_size() <= gpt.config().vocabulary_size, ErrorCode::invalid_argument,
          "the tokenizer has {} tokens, the model only {}", tokenizer.vocabulary_size(),
          gpt.config().vocabulary_size);
  const microworld::Microworld microworld(options.seed);
  const CausalExamination examination(gpt);
  MicroworldCausality causality;
  for (std::int64_t i = 0; i < options.stories; ++i) {
    require(!stop_requested(options.stop), ErrorCode::interrupted, "interrupted");
    const MarkedStory story = mark_story(microworld.story(i), tokenizer);
    if (std::ssize(story.tokens) - 1 <= gpt.config().context) {
      examination.add(noun_cases(story), causality.noun_to_adjectives);
      examination.add(clue_cases(story, Asking::last_word), causality.last_word_to_clue);
      examination.add(clue_cases(story, Asking::all_words), causality.all_words_to_clue);
    }
    if (options.progress) options.progress({"cutting edges", i + 1, options.stories});
  }
  take_mean(causality.noun_to_adjectives);
  take_mean(causality.last_word_to_clue);
  take_mean(causality.all_words_to_clue);
  return causality;
}

}  // namespace heed
