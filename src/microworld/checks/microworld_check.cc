#include "microworld/checks/microworld_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/threads.h"
#include "microworld/checks/marked_story.h"
#include "microworld/microworld.h"
#include "model/input_checks.h"

namespace heed {
namespace {

constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

double mean_or_nan(double sum, std::int64_t count) {
  return count == 0 ? not_measured : sum / static_cast<double>(count);
}

std::vector<MarkedStory> write_stories(const Tokenizer& tokenizer,
                                       const MicroworldCheckOptions& options) {
  const microworld::Microworld microworld(options.seed);
  std::vector<MarkedStory> stories(options.stories);
  parallel_items(options.stories,
                 [&](std::int64_t i) { stories[i] = mark_story(microworld.story(i), tokenizer); });
  return stories;
}

// Tokens [begin, end) of a story, processed in one forward pass; predictions of tokens before
// `counted` were measured in the previous window.
struct Window {
  const MarkedStory* story = nullptr;
  std::int64_t begin = 0;
  std::int64_t counted = 0;
  std::int64_t end = 0;

  bool counts(std::int64_t position) const { return counted <= position && position < end; }
};

// Covers a story without its last token, which is only predicted. Windows after the first start
// with half a context of preceding tokens.
std::vector<Window> windows_of(const MarkedStory& story, std::int64_t context) {
  const auto size = static_cast<std::int64_t>(story.tokens.size()) - 1;
  std::vector<Window> windows{{&story, 0, 0, std::min(size, context)}};
  while (windows.back().end < size) {
    const std::int64_t counted = windows.back().end;
    const std::int64_t begin = counted - context / 2;
    windows.push_back({&story, begin, counted, std::min(size, begin + context)});
  }
  return windows;
}

// A batch of windows, padded at the end: later tokens do not affect earlier ones.
struct Batch {
  std::vector<Window> windows;
  std::int64_t positions = 0;
  Tensor<std::int32_t> tokens;   // (B, T)
  Tensor<std::int32_t> targets;  // (B, T)

  explicit Batch(std::vector<Window> chosen) : windows(std::move(chosen)) {
    for (const Window& window : windows) {
      positions = std::max(positions, window.end - window.begin);
    }
    const Shape shape{std::ssize(windows), positions};
    tokens = Tensor<std::int32_t>(shape);
    targets = Tensor<std::int32_t>(shape);
    targets.fill(kernels::ignored_target);
    for (std::size_t b = 0; b < windows.size(); ++b) {
      const Window& window = windows[b];
      for (std::int64_t i = window.begin; i < window.end; ++i) {
        tokens.view()(b, i - window.begin) = window.story->tokens[i];
        if (window.counts(i)) targets.view()(b, i - window.begin) = window.story->tokens[i + 1];
      }
    }
  }
};

// Sums the attention of the nouns of a batch to their adjectives.
class AdjectiveProbe final : public Probe {
 public:
  explicit AdjectiveProbe(const StackSpecification& config)
      : heads_(config.heads()), sums_(config.layers * config.heads(), 0.0) {}

  void look_at(const Batch* batch) { batch_ = batch; }
  bool wants(const Point& point) const override { return point.kind == PointKind::pattern; }

  void observe(const Point& point, View<const float> values) override {
    for (std::size_t b = 0; b < batch_->windows.size(); ++b) {
      const Window& window = batch_->windows[b];
      for (const MarkedStory::Noun& noun : window.story->nouns) {
        if (window.counts(noun.at.last())) add(point.layer, window, noun, values[b]);
      }
    }
  }

  void report(std::int64_t nouns, MicroworldCheck& check) const {
    const auto best = std::ranges::max_element(sums_) - sums_.begin();
    check.adjective_nouns = nouns;
    check.adjective_mass = mean_or_nan(sums_[best], nouns);
    check.adjective_head = fmt::format("{}.{}", best / heads_, best % heads_);
  }

 private:
  // pattern (H, T, T)
  void add(std::int64_t layer, const Window& window, const MarkedStory::Noun& noun,
           View<const float> pattern) {
    for (std::int64_t head = 0; head < heads_; ++head) {
      for (const TokenRange& adjective : noun.adjectives) {
        for (std::int64_t s = std::max(adjective.begin, window.begin); s < adjective.end; ++s) {
          sums_[layer * heads_ + head] +=
              pattern(head, noun.at.last() - window.begin, s - window.begin);
        }
      }
    }
  }

  std::int64_t heads_;
  std::vector<double> sums_;  // (L, H)
  const Batch* batch_ = nullptr;
};

// Runs the model on the stories and accumulates the measurements.
class Examination {
 public:
  Examination(const Transformer& model, const std::vector<MarkedStory>& stories)
      : model_(model), stories_(stories), adjectives_(model.specification()) {}

  void read(const Batch& batch) {
    const std::int64_t size = std::ssize(batch.windows);
    const StackSpecification& config = model_.specification();
    const StackActivations activations(config, size, batch.positions, Keep::one_block);
    adjectives_.look_at(&batch);
    model_.forward(batch.tokens, {.sequences = {size, batch.positions}, .probe = &adjectives_},
                   activations);

    VocabularyLoss loss(config.vocabulary_size);
    Tensor<float> losses(Shape{size * batch.positions});
    loss_ += loss.forward(activations.final_norm(), model_.parameters().unembedding(),
                          batch.targets.view().reshape({size * batch.positions}), losses)
                 .sum;
    for (std::int64_t b = 0; b < size; ++b) {
      const Window& window = batch.windows[b];
      const View<const float> vectors =
          activations.final_norm().slice(0, b * batch.positions, (b + 1) * batch.positions);
      note_senses(window, vectors);
      note_culprit(window, vectors);
    }
  }

  MicroworldCheck report() const {
    MicroworldCheck check;
    check.stories = static_cast<std::int64_t>(stories_.size());
    check.loss_nats_per_story = loss_ / static_cast<double>(check.stories);
    double log_probability = 0;
    std::int64_t nouns = 0;
    for (const MarkedStory& story : stories_) {
      log_probability += story.log_probability;
      nouns += static_cast<std::int64_t>(story.nouns.size());
    }
    check.entropy_nats_per_story = -log_probability / static_cast<double>(check.stories);
    check.sense_marks = static_cast<std::int64_t>(vectors_.size());
    check.sense_accuracy = nearest_centroid_accuracy(vectors_);
    check.static_sense_accuracy = nearest_centroid_accuracy(static_vectors_);
    check.recalled_sense_accuracy = nearest_centroid_accuracy(recalled_vectors_);
    check.recalled_sense_marks = static_cast<std::int64_t>(recalled_vectors_.size());
    check.mysteries = mysteries_;
    check.culprit_accuracy =
        mean_or_nan(static_cast<double>(mysteries_ - std::ssize(misnamed_)), mysteries_);
    check.culprit_min_distance = mysteries_ == 0 ? -1 : min_distance_;
    adjectives_.report(nouns, check);
    return check;
  }

 private:
  // vectors (T, C): the final norm of one window.
  void note_senses(const Window& window, View<const float> vectors) {
    const MarkedStory& story = *window.story;
    const int half = static_cast<int>((&story - stories_.data()) % 2);
    const View<const float> embedding = model_.parameters().token_embedding();
    const auto row = [](View<const float> matrix, std::int64_t i) {
      return std::vector<float>(&matrix(i, 0), &matrix(i, 0) + matrix.extent(1));
    };
    for (const MarkedStory::Sense& sense : story.senses) {
      const std::int64_t position = sense.at.last();
      if (!window.counts(position)) continue;
      auto& found = sense.recalled ? recalled_vectors_ : vectors_;
      found.push_back({sense.word, sense.sense, half, row(vectors, position - window.begin)});
      if (sense.recalled) continue;
      static_vectors_.push_back(
          {sense.word, sense.sense, half, row(embedding, story.tokens[position])});
    }
  }

  // Greedy decoding produces the answer exactly if each of its tokens is the most likely one after
  // the true tokens before it.
  void note_culprit(const Window& window, View<const float> vectors) {
    const MarkedStory& story = *window.story;
    if (!story.mystery) return;
    const MarkedStory::Mystery& mystery = *story.mystery;
    for (std::int64_t position = mystery.answer.begin; position < mystery.answer.end; ++position) {
      if (!window.counts(position - 1)) continue;
      if (likeliest_after(vectors, position - 1 - window.begin) != story.tokens[position]) {
        misnamed_.insert(&story);
      }
    }
    if (!window.counts(mystery.answer.begin - 1)) return;
    ++mysteries_;
    min_distance_ = std::min(min_distance_, mystery.answer.begin - mystery.clue.end);
  }

  std::int64_t likeliest_after(View<const float> vectors, std::int64_t row) const {
    Tensor<float> logits(Shape{1, model_.specification().vocabulary_size});
    model_.project(vectors.slice(0, row, row + 1), logits);
    return std::ranges::max_element(logits.span()) - logits.span().begin();
  }

  const Transformer& model_;
  const std::vector<MarkedStory>& stories_;
  AdjectiveProbe adjectives_;
  std::vector<LabelledVector> vectors_;
  std::vector<LabelledVector> recalled_vectors_;
  std::vector<LabelledVector> static_vectors_;
  double loss_ = 0;
  std::int64_t mysteries_ = 0;
  std::set<const MarkedStory*> misnamed_;
  std::int64_t min_distance_ = std::numeric_limits<std::int64_t>::max();
};

struct Centroid {
  std::vector<double> sum;
  std::int64_t count = 0;

  void add(const std::vector<float>& vector) {
    sum.resize(vector.size(), 0.0);
    for (std::size_t i = 0; i < vector.size(); ++i) sum[i] += vector[i];
    ++count;
  }
  double squared_distance(const std::vector<float>& vector) const {
    double total = 0;
    for (std::size_t i = 0; i < vector.size(); ++i) {
      const double difference = vector[i] - sum[i] / static_cast<double>(count);
      total += difference * difference;
    }
    return total;
  }
};

using Centroids = std::map<std::string, Centroid>;  // by sense

const std::string& nearest(const Centroids& centroids, const std::vector<float>& vector) {
  const std::string* best = nullptr;
  double best_distance = std::numeric_limits<double>::infinity();
  for (const auto& [sense, centroid] : centroids) {
    const double distance = centroid.squared_distance(vector);
    if (best == nullptr || distance < best_distance) {
      best = &sense;
      best_distance = distance;
    }
  }
  return *best;
}

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
  explicit CausalExamination(const Transformer& model) : model_(model) {}

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
    const std::int64_t vocabulary = model_.specification().vocabulary_size;
    const StackActivations activations(model_.specification(), 1, positions, Keep::one_block);
    model_.forward({story.tokens.data(), {1, positions}},
                   {.sequences = {1, positions}, .editor = editor}, activations);
    Tensor<float> logits(Shape{1, vocabulary});
    for (const Case& each : story.cases) {
      model_.project(activations.final_norm().slice(0, each.position, each.position + 1), logits);
      const std::int32_t truth = story.tokens[static_cast<std::size_t>(each.position + 1)];
      const double largest = *std::ranges::max_element(logits.span());
      double sum = 0;
      for (const float logit : logits.span()) sum += std::exp(logit - largest);
      probability += std::exp(logits[truth] - largest) / sum;
      accuracy += logits[truth] == static_cast<float>(largest) ? 1 : 0;
    }
  }

  const Transformer& model_;
};

void take_mean(CausalEffect& effect) {
  for (double* sum : {&effect.probability, &effect.probability_cut, &effect.probability_control,
                      &effect.accuracy, &effect.accuracy_cut, &effect.accuracy_control}) {
    *sum /= static_cast<double>(effect.cases);  // NaN without cases
  }
}

}  // namespace

MicroworldCheck check_microworld(const Transformer& model, const Tokenizer& tokenizer,
                                 const MicroworldCheckOptions& options) {
  require_predicts_next(model.specification(), "the microworld's check");
  require(options.stories >= 2, ErrorCode::invalid_argument,
          "{} stories: expected at least two, because each half is measured against the other",
          options.stories);
  require(options.batch_size >= 1, ErrorCode::invalid_argument, "batch size {} is below 1",
          options.batch_size);
  require(tokenizer.vocabulary_size() <= model.specification().vocabulary_size,
          ErrorCode::invalid_argument, "the tokenizer has {} tokens, the model only {}",
          tokenizer.vocabulary_size(), model.specification().vocabulary_size);
  const std::vector<MarkedStory> stories = write_stories(tokenizer, options);

  // Windows of similar length share a pass, to keep padding small.
  std::vector<Window> windows;
  for (const MarkedStory& story : stories) {
    for (const Window& window : windows_of(story, model.specification().context))
      windows.push_back(window);
  }
  std::ranges::stable_sort(windows, {},
                           [](const Window& window) { return window.end - window.begin; });

  Examination examination(model, stories);
  for (std::int64_t begin = 0; begin < std::ssize(windows); begin += options.batch_size) {
    require(!stop_requested(options.stop), ErrorCode::interrupted, "interrupted");
    const std::int64_t end =
        std::min<std::int64_t>(begin + options.batch_size, std::ssize(windows));
    examination.read(Batch({windows.begin() + begin, windows.begin() + end}));
    if (options.progress) options.progress({"reading stories", end, std::ssize(windows)});
  }
  return examination.report();
}

double nearest_centroid_accuracy(const std::vector<LabelledVector>& vectors) {
  std::map<std::string, std::array<Centroids, 2>> by_word;
  for (const LabelledVector& labelled : vectors) {
    by_word[labelled.word][labelled.half][labelled.sense].add(labelled.vector);
  }
  struct Tally {
    std::int64_t right = 0;
    std::int64_t all = 0;
  };
  std::map<std::string, Tally> tallies;
  for (const LabelledVector& labelled : vectors) {
    const auto& halves = by_word[labelled.word];
    if (halves[0].size() < 2 || halves[1].size() < 2) continue;
    const Centroids& means = halves[1 - labelled.half];
    if (!means.contains(labelled.sense)) continue;
    Tally& tally = tallies[labelled.word];
    tally.right += nearest(means, labelled.vector) == labelled.sense ? 1 : 0;
    ++tally.all;
  }
  if (tallies.empty()) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (const auto& [word, tally] : tallies) {
    sum += static_cast<double>(tally.right) / static_cast<double>(tally.all);
  }
  return sum / static_cast<double>(tallies.size());
}

MicroworldCausality check_microworld_causality(const Transformer& model, const Tokenizer& tokenizer,
                                               const MicroworldCheckOptions& options) {
  require_predicts_next(model.specification(), "causes in the microworld");
  require(options.stories >= 1, ErrorCode::invalid_argument, "{} stories: expected at least one",
          options.stories);
  require(tokenizer.vocabulary_size() <= model.specification().vocabulary_size,
          ErrorCode::invalid_argument, "the tokenizer has {} tokens, the model only {}",
          tokenizer.vocabulary_size(), model.specification().vocabulary_size);
  const microworld::Microworld microworld(options.seed);
  const CausalExamination examination(model);
  MicroworldCausality causality;
  for (std::int64_t i = 0; i < options.stories; ++i) {
    require(!stop_requested(options.stop), ErrorCode::interrupted, "interrupted");
    const MarkedStory story = mark_story(microworld.story(i), tokenizer);
    if (std::ssize(story.tokens) - 1 <= model.specification().context) {
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
