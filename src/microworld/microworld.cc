#include "microworld/microworld.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/threads.h"
#include "microworld/kinds.h"
#include "microworld/scenes.h"

namespace heed::microworld {
namespace {

std::vector<AmbiguousWord> words_of(std::span<const Scene> scenes) {
  std::vector<AmbiguousWord> words;
  for (const Scene& scene : scenes) {
    if (words.empty() || words.back().word != scene.word) {
      words.push_back({std::string(scene.word), {}});
    }
    words.back().readings.emplace_back(scene.reading);
  }
  return words;
}

}  // namespace

Story Microworld::story(std::int64_t index) const {
  require(index >= 0, ErrorCode::invalid_argument, "story index {} is negative", index);
  Sampler sampler(seed_, static_cast<std::uint64_t>(index));
  Writer writer(sampler);
  tell(writer);
  writer.story().index = index;
  return std::move(writer.story());
}

Entropy Microworld::entropy(std::int64_t begin, std::int64_t end) const {
  require(end - begin >= 2, ErrorCode::invalid_argument,
          "an entropy needs at least two stories, got [{}, {})", begin, end);
  const std::int64_t count = end - begin;
  std::vector<double> nats(static_cast<std::size_t>(count));
  parallel_ranges(count, 256, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      nats[static_cast<std::size_t>(i)] = -story(begin + i).log_probability;
    }
  });
  double sum = 0.0;
  for (double value : nats) sum += value;
  const double mean = sum / static_cast<double>(count);
  double squares = 0.0;
  for (double value : nats) squares += (value - mean) * (value - mean);
  const double variance = squares / static_cast<double>(count - 1);
  return {mean, std::sqrt(variance / static_cast<double>(count)), count};
}

std::vector<Story> derivations(std::string_view text, std::size_t limit) {
  std::vector<Story> stories;
  Replayer replayer(text);
  do {
    Writer writer(replayer);
    tell(writer);
    if (replayer.matched()) stories.push_back(std::move(writer.story()));
  } while (stories.size() < limit && replayer.next());
  return stories;
}

std::optional<Story> parse(std::string_view text) {
  std::vector<Story> stories = derivations(text, 1);
  if (stories.empty()) return std::nullopt;
  return std::move(stories.front());
}

double log_probability(std::string_view text) {
  const std::vector<Story> stories = derivations(text);
  if (stories.empty()) return -std::numeric_limits<double>::infinity();
  // One derivation has the whole probability; were there more, theirs would add.
  double total = 0.0;
  for (const Story& story : stories) {
    total += std::exp(story.log_probability - stories[0].log_probability);
  }
  return stories[0].log_probability + std::log(total);
}

std::vector<AmbiguousWord> ambiguous_words() { return words_of(sense_scenes()); }

std::vector<AmbiguousWord> ambiguous_names() { return words_of(name_scenes()); }

}  // namespace heed::microworld
