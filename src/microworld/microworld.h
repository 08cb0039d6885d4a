// Small English stories from a probabilistic grammar, each with the truth about it attached and its
// exact probability known.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "microworld/story.h"

namespace heed::microworld {

// What one story tells on average, in nats, and how far that estimate may be off.
struct Entropy {
  double nats_per_story = 0.0;
  double standard_error = 0.0;
  std::int64_t stories = 0;
};

// A word of several senses, or a name of several bearers, and its equally likely readings.
struct AmbiguousWord {
  std::string word;
  std::vector<std::string> readings;
};

class Microworld {
 public:
  explicit Microworld(std::uint64_t seed) : seed_(seed) {}

  // Story `index` of this seed, a pure function of the two. Throws Error{invalid_argument} when
  // index < 0.
  Story story(std::int64_t index) const;

  // Mean of -log p over the stories [begin, end): an unbiased estimate of the grammar's entropy.
  Entropy entropy(std::int64_t begin, std::int64_t end) const;

  std::uint64_t seed() const { return seed_; }

 private:
  std::uint64_t seed_;
};

// The story that a text is, with its truth; nothing when the grammar cannot make it.
std::optional<Story> parse(std::string_view text);

// Every way in which the grammar makes the text, `limit` at most. The grammar is meant to be
// unambiguous, so that there is one way or none.
std::vector<Story> derivations(std::string_view text, std::size_t limit = 16);

// Natural logarithm of the text's probability under the grammar; minus infinity when it has none.
double log_probability(std::string_view text);

std::vector<AmbiguousWord> ambiguous_words();  // mole, tower, ...
std::vector<AmbiguousWord> ambiguous_names();  // Harry, Jordan, ...

}  // namespace heed::microworld
