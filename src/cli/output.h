// Results go to standard output, through here; everything else goes to standard error.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace heed::cli {

// Writes to standard output. Throws Error{input_output} when it cannot be written (a full disk).
void print(std::string_view text);
void flush_output();

// One JSON document and a newline.
void print_json(const OrderedJson& document);

// A float as a JSON number that reads back as the same float; null where it is not finite, for JSON
// has no infinity.
OrderedJson json_number(float value);
OrderedJson json_number(double value);

// The same text, appended without building a document: for millions of numbers.
void append_json_number(std::string& text, float value);

}  // namespace heed::cli
