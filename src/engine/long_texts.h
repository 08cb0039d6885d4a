// Sources that are longer than a translator's encoder reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/loaded_model.h"

namespace heed {

// What becomes of a source that is longer than the encoder reads.
enum class LongTexts {
  refuse,  // an error that names the text
  crop,    // what does not fit is left out: from a word on where that is possible
  split,   // parts that fit: at ends of sentences, or else at spaces, or else anywhere
};

// "refuse", "crop" and "split".
std::vector<std::string> long_texts_names();
// Throws Error{invalid_argument} with the names that there are.
LongTexts parse_long_texts(std::string_view name);

// The parts of a text that are to be translated: the text itself where it fits or is to be refused,
// its beginning, or all of it in order, without the spaces between parts.
std::vector<std::string> fitting_parts(const LoadedModel& translator, std::string_view text,
                                       LongTexts treatment);

}  // namespace heed
