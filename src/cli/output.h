// Results go to standard output, through here; everything else goes to standard error.
#pragma once

#include <string>
#include <string_view>

#include "base/json_fwd.h"

namespace heed::cli {

// Writes to standard output. Throws Error{input_output} when it cannot be written (a full disk).
void print(std::string_view text);
void flush_output();

// Text of a model, a file or a request, for standard output: a pipe gets the bytes as they are; a
// terminal, which obeys control characters, gets them escaped (line breaks and tabs stay).
std::string shown_text(std::string_view text);

// One JSON document and a newline.
void print_json(const OrderedJson& document);

}  // namespace heed::cli
