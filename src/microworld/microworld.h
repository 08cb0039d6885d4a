// Short English stories from a probabilistic grammar, each with ground truth and its exact
// probability.
#pragma once

#include <cstdint>
#include <functional>
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

// Generates many stories in parallel and delivers them in order.

// Follows every story in a training file.
inline constexpr std::string_view end_of_text = "<|endoftext|>";

enum class CorpusFormat {
  text,   // the stories, each followed by end_of_text
  truth,  // one line of JSON per story
};

// Receives the corpus piece by piece.
using TextSink = std::function<void(std::string_view)>;

struct CorpusOptions {
  std::int64_t begin = 0;  // stories [begin, end) of the seed
  std::int64_t end = 0;
  CorpusFormat format = CorpusFormat::text;
  ProgressCallback progress = nullptr;
  StopFlag stop = nullptr;
};

// Throws Error{invalid_argument} unless 0 <= begin <= end, and Error{interrupted} on request, after
// whole stories.
void write_corpus(const Microworld& microworld, const CorpusOptions& options, const TextSink& sink);

// The same as one string.
std::string corpus(const Microworld& microworld, std::int64_t begin, std::int64_t end,
                   CorpusFormat format = CorpusFormat::text);

}  // namespace heed::microworld
