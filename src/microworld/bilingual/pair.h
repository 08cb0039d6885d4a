// A sentence in English and in German, with the truth about both.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "microworld/bilingual/sentence_writer.h"

namespace heed::microworld::bilingual {

// A word of the English sentence and one of the German, by index.
struct Link {
  std::size_t english = 0;
  std::size_t german = 0;

  friend auto operator<=>(const Link&, const Link&) = default;  // NOLINT(modernize-use-nullptr)
};

struct Pair {
  std::int64_t index = -1;
  WrittenSentence english;
  WrittenSentence german;
  std::vector<Link> sure;                // sorted
  std::vector<Link> possible;            // sorted; none of them sure
  double english_log_probability = 0.0;  // natural logarithms: of the English sentence,
  double german_log_probability = 0.0;   // and of the German one given the English
};

// Fills in the links from the concepts of the words.
void align(Pair& pair);

// "0-0 1-2": one line of Pharaoh's format, without the newline.
std::string pharaoh_line(const std::vector<Link>& links);

// The pair as one line of JSON, without the newline.
std::string to_json_line(const Pair& pair);

}  // namespace heed::microworld::bilingual
