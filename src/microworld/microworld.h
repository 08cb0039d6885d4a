// Short English stories from a probabilistic grammar, each with ground truth and its exact
// probability.
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

class Microworld {
 public:
  explicit Microworld(std::uint64_t seed) : seed_(seed) {}

  // Story `index` of this seed, a pure function of the two. Throws Error{invalid_argument} when
  // index < 0.
  Story story(std::int64_t index) const;

  std::uint64_t seed() const { return seed_; }

 private:
  std::uint64_t seed_;
};

// Parses a text into a story with its ground truth; nothing if the grammar cannot generate it.
std::optional<Story> parse(std::string_view text);

// Up to `limit` derivations of the text. The grammar is unambiguous: there is one derivation or
// none.
std::vector<Story> derivations(std::string_view text, std::size_t limit = 16);

// Natural logarithm of the text's probability under the grammar; minus infinity without derivation.
double log_probability(std::string_view text);

}  // namespace heed::microworld
