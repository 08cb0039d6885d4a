// JSON with heed's errors: nlohmann::json parsed strictly, fields read with their expected type.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

#include "base/json_fwd.h"

namespace heed {

// Parses one document. Throws Error{corrupt_data} naming `source` and the position of the fault;
// refuses nesting deeper than 64 levels and duplicate keys.
Json parse_json(std::string_view text, std::string_view source);

// A float as a JSON number that reads back as the same float; null where it is not finite, for JSON
// has no infinity.
OrderedJson json_number(float value);
OrderedJson json_number(double value);

// The same text, appended without building a document: for millions of numbers.
void append_json_number(std::string& text, float value);

// One line. Text that a model wrote need not be UTF-8; JSON must be: what is none becomes U+FFFD.
std::string json_text(const OrderedJson& document);

}  // namespace heed
