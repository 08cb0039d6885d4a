// Short English stories from a probabilistic grammar, each with ground truth and its exact
// probability.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "microworld/story.h"

namespace heed::microworld {

class Microworld {
 public:
  // Tells stories of the given kinds; empty: of all.
  explicit Microworld(std::uint64_t seed, std::vector<StoryKind> kinds = {})
      : seed_(seed), kinds_(std::move(kinds)) {}

  // Story `index` of this seed, a pure function of the two and the kinds. Throws
  // Error{invalid_argument} when index < 0.
  Story story(std::int64_t index) const;

  std::uint64_t seed() const { return seed_; }

 private:
  std::uint64_t seed_;
  std::vector<StoryKind> kinds_;
};

// Parses a text, of any kind, into a story with its ground truth; nothing if the grammar cannot
// generate it.
std::optional<Story> parse(std::string_view text);

// Up to `limit` derivations of the text. The grammar is unambiguous: there is one derivation or
// none.
std::vector<Story> derivations(std::string_view text, std::size_t limit = 16);

// Natural logarithm of the text's probability under the grammar; minus infinity without derivation.
double log_probability(std::string_view text);

}  // namespace heed::microworld
