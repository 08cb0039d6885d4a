// The microworld told in two languages: pairs of sentences with the true alignment of their words
// and exact probabilities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "microworld/bilingual/pair.h"
#include "microworld/bilingual/words.h"

namespace heed::microworld::bilingual {

class Bilingual {
 public:
  explicit Bilingual(std::uint64_t seed, const Grammar& grammar = whole_grammar())
      : seed_(seed), grammar_(grammar) {}

  // Pair `index` of this seed, a pure function of the two and the grammar. Throws
  // Error{invalid_argument} when index < 0.
  Pair pair(std::int64_t index) const;

  std::uint64_t seed() const { return seed_; }

 private:
  std::uint64_t seed_;
  const Grammar& grammar_;
};

// A pair told with the choices of a chooser. Throws DeadEnd if the chooser follows a text and the
// sentences cannot become it.
Pair tell_pair(Chooser& english, Chooser& german, const Grammar& grammar = whole_grammar());

// The natural logarithm of the probability of the German sentence given the English one: the sum
// over all derivations of both, divided by the sum over those of the English. Minus infinity if the
// grammar cannot make the pair.
struct PairProbability {
  double english = 0.0;
  double german_given_english = 0.0;
  std::size_t english_derivations = 0;
  std::size_t pair_derivations = 0;
};

PairProbability pair_probability(std::string_view english, std::string_view german,
                                 const Grammar& grammar = whole_grammar());

// The pair of two given sentences with its alignment, by its most likely derivation; nothing if the
// grammar cannot make it.
std::optional<Pair> read_pair(std::string_view english, std::string_view german,
                              const Grammar& grammar = whole_grammar());

}  // namespace heed::microworld::bilingual
