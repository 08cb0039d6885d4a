// Generates many stories in parallel and delivers them in order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/progress.h"
#include "microworld/microworld.h"

namespace heed::microworld {

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
