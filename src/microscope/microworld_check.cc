#include "microscope/microworld_check.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/threads.h"
#include "microscope/marked_story.h"
#include "microscope/nearest_centroid.h"
#include "microworld/microworld.h"

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

// Stories that are read in one pass, padded at the end: what follows a token never changes it.
struct Batch {
  std::vector<const MarkedStory*> stories;
  std::int64_t positions = 0;    // the last token is only predicted
  Tensor<std::int32_t> tokens;   // (B, T)
  Tensor<std::int32_t> targets;  // (B, T)

  explicit Batch(std::vector<const MarkedStory*> chosen) : stories(std::move(chosen)) {
    for (const MarkedStory* story : stories) {
      positions = std::max(positions, static_cast<std::int64_t>(story->tokens.size()) - 1);
    }
    const Shape shape{static_cast<std::int64_t>(stories.size()), positions};
    tokens = Tensor<std::int32_t>(shape);
    targets = Tensor<std::int32_t>(shape);
    targets.fill(kernels::ignored_target);
    for (std::size_t b = 0; b < stories.size(); ++b) {
      const auto& story = stories[b]->tokens;
      std::copy(story.begin(), story.end() - 1, &tokens.view()(b, 0));
      std::copy(story.begin() + 1, story.end(), &targets.view()(b, 0));
    }
  }
};

// Sums, over the nouns of a batch, the attention that each pays to its adjectives.
class AdjectiveProbe final : public Probe {
 public:
  explicit AdjectiveProbe(const GptConfig& config)
      : heads_(config.heads), sums_(config.layers * config.heads, 0.0) {}

  void look_at(const Batch* batch) { batch_ = batch; }
  bool wants(const Site& site) const override { return site.point == Point::pattern; }

  void observe(const Site& site, View<const float> values) override {
    if (site.point != Point::pattern) return;
    for (std::size_t b = 0; b < batch_->stories.size(); ++b) {
      for (const MarkedStory::Noun& noun : batch_->stories[b]->nouns) {
        for (std::int64_t head = 0; head < heads_; ++head) {
          for (const TokenRange& adjective : noun.adjectives) {
            for (std::int64_t s = adjective.begin; s < adjective.end; ++s) {
              sums_[site.layer * heads_ + head] += values(b, head, noun.at.last(), s);
            }
          }
        }
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
  std::int64_t heads_;
  std::vector<double> sums_;  // (L, H)
  const Batch* batch_ = nullptr;
};

// Reads the stories and adds up what is measured.
class Examination {
 public:
  Examination(const Gpt& gpt, const std::vector<MarkedStory>& stories)
      : gpt_(gpt), stories_(stories), adjectives_(gpt.config()) {}

  void read(const Batch& batch) {
    const auto size = static_cast<std::int64_t>(batch.stories.size());
    const GptConfig& config = gpt_.config();
    const GptActivations activations(config, size, batch.positions, Keep::one_block);
    adjectives_.look_at(&batch);
    gpt_.forward(batch.tokens, {.batch = size, .positions = batch.positions, .probe = &adjectives_},
                 activations);

    VocabularyLoss loss(config.vocabulary_size);
    Tensor<float> losses(Shape{size * batch.positions});
    loss_ += loss.forward(activations.final_norm(), gpt_.parameters().head(),
                          batch.targets.view().reshape({size * batch.positions}), losses)
                 .sum;
    for (std::int64_t b = 0; b < size; ++b) {
      const MarkedStory& story = *batch.stories[b];
      const View<const float> vectors =
          activations.final_norm().slice(0, b * batch.positions, (b + 1) * batch.positions);
      note_senses(story, vectors);
      if (story.mystery) question_culprit(story, vectors);
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
    check.mysteries = mysteries_;
    check.culprit_accuracy = mean_or_nan(static_cast<double>(solved_), mysteries_);
    check.culprit_min_distance = mysteries_ == 0 ? -1 : least_distance_;
    adjectives_.report(nouns, check);
    return check;
  }

 private:
  // vectors (T, C): the final ones of one story.
  void note_senses(const MarkedStory& story, View<const float> vectors) {
    const int half = static_cast<int>((&story - stories_.data()) % 2);
    const View<const float> embedding = gpt_.parameters().token_embedding();
    const auto row = [](View<const float> matrix, std::int64_t i) {
      return std::vector<float>(&matrix(i, 0), &matrix(i, 0) + matrix.extent(1));
    };
    for (const MarkedStory::Sense& sense : story.senses) {
      vectors_.push_back({sense.word, sense.sense, half, row(vectors, sense.at.last())});
      static_vectors_.push_back(
          {sense.word, sense.sense, half, row(embedding, story.tokens[sense.at.last()])});
    }
  }

  // Greedy decoding spells the answer exactly when each of its tokens is the likeliest after the
  // true ones before it.
  void question_culprit(const MarkedStory& story, View<const float> vectors) {
    const MarkedStory::Mystery& mystery = *story.mystery;
    const std::int64_t length = mystery.answer.end - mystery.answer.begin;
    Tensor<float> logits(Shape{length, gpt_.config().vocabulary_size});
    gpt_.project(vectors.slice(0, mystery.answer.begin - 1, mystery.answer.end - 1), logits);
    bool named = true;
    for (std::int64_t i = 0; i < length; ++i) {
      const std::span<const float> row = logits.view()[i].span();
      const auto likeliest = std::ranges::max_element(row) - row.begin();
      named = named && likeliest == story.tokens[mystery.answer.begin + i];
    }
    ++mysteries_;
    solved_ += named ? 1 : 0;
    least_distance_ = std::min(least_distance_, mystery.answer.begin - mystery.clue.end);
  }

  const Gpt& gpt_;
  const std::vector<MarkedStory>& stories_;
  AdjectiveProbe adjectives_;
  std::vector<LabelledVector> vectors_;
  std::vector<LabelledVector> static_vectors_;
  double loss_ = 0;
  std::int64_t mysteries_ = 0;
  std::int64_t solved_ = 0;
  std::int64_t least_distance_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace

MicroworldCheck check_microworld(const Gpt& gpt, const Tokenizer& tokenizer,
                                 const MicroworldCheckOptions& options) {
  require(options.stories >= 2, ErrorCode::invalid_argument,
          "{} stories are too few: half of them is judged by the other half", options.stories);
  require(options.batch_size >= 1, ErrorCode::invalid_argument, "batch size {} is below 1",
          options.batch_size);
  require(tokenizer.vocabulary_size() <= gpt.config().vocabulary_size, ErrorCode::invalid_argument,
          "the tokenizer has {} tokens, the model only {}", tokenizer.vocabulary_size(),
          gpt.config().vocabulary_size);
  const std::vector<MarkedStory> stories = write_stories(tokenizer, options);

  // Stories of about the same length share a pass, so that little of it is padding.
  std::vector<const MarkedStory*> by_length;
  for (const MarkedStory& story : stories) by_length.push_back(&story);
  std::ranges::stable_sort(by_length, {},
                           [](const MarkedStory* story) { return story->tokens.size(); });
  const auto longest = static_cast<std::int64_t>(by_length.back()->tokens.size()) - 1;
  require(longest <= gpt.config().context, ErrorCode::unsupported,
          "a story takes {} positions, but the model's context has {}", longest,
          gpt.config().context);

  Examination examination(gpt, stories);
  for (std::size_t begin = 0; begin < by_length.size(); begin += options.batch_size) {
    require(!stop_requested(options.stop), ErrorCode::interrupted, "interrupted");
    const std::size_t end =
        std::min(begin + static_cast<std::size_t>(options.batch_size), by_length.size());
    examination.read(Batch({by_length.begin() + static_cast<std::ptrdiff_t>(begin),
                            by_length.begin() + static_cast<std::ptrdiff_t>(end)}));
    if (options.progress) {
      options.progress({"reading stories", static_cast<std::int64_t>(end), options.stories});
    }
  }
  return examination.report();
}

}  // namespace heed
