// What a model has read, as far as it is known, and the words of a text that it has not.
//
//   if (const auto unread = heed::unread_words(model, "I love pizza")) puts(unread->note.c_str());
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/heed.h"

namespace heed {

// From reading.json beside the model.
struct ReadTexts {
  std::string title;        // in one line
  std::int64_t tokens = 0;  // that training read
  // Different words that were read whole often enough; nothing where that is not known.
  std::optional<std::int64_t> words;  // of a translator: of its sources
  std::optional<std::int64_t> target_words;
};

// Words of a text that a model has not read whole.
struct UnreadText {
  struct Word {
    std::string text;
    std::size_t begin = 0;  // bytes of the text, [begin, end)
    std::size_t end = 0;
  };
  std::vector<Word> words;  // in order, every occurrence
  std::int64_t of = 0;      // different words of the text
  std::string note;         // a sentence that says so; empty where every word was read
};

// Nothing where the model has no reading.json, as published models have none.
std::optional<ReadTexts> read_texts(const Model& model);

// Of a text, or of a source. Nothing where it is not known which words the model has read.
std::optional<UnreadText> unread_words(const Model& model, std::string_view text);

}  // namespace heed
