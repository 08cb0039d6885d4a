// Files of sentences, one a line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed::scoring {

// The lines of a text without white space at their ends, such as a carriage return; a newline at
// the end of the text ends its last line. `source` names the text in messages. Throws
// Error{invalid_argument} for an empty text, Error{corrupt_data} with the line's number where one
// is not UTF-8.
std::vector<std::string> read_sentences(std::string_view text, std::string_view source);

}  // namespace heed::scoring
