#include "microworld/microworld.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "microworld/kinds.h"

namespace heed::microworld {
Story Microworld::story(std::int64_t index) const {
  require(index >= 0, ErrorCode::invalid_argument, "story index {} is negative", index);
  Sampler sampler(seed_, static_cast<std::uint64_t>(index));
  Writer writer(sampler);
  tell(writer, kinds_);
  writer.story().index = index;
  return std::move(writer.story());
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
  // The sum over all derivations; the grammar has at most one.
  double total = 0.0;
  for (const Story& story : stories) {
    total += std::exp(story.log_probability - stories[0].log_probability);
  }
  return stories[0].log_probability + std::log(total);
}

}  // namespace heed::microworld
