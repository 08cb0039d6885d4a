// JSON with heed's errors: nlohmann::json parsed strictly, fields read with their expected type.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace heed {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// Parses one document. Throws Error{corrupt_data} naming `source` and the position of the fault;
// refuses nesting deeper than 64 levels and duplicate keys.
Json parse_json(std::string_view text, std::string_view source);

}  // namespace heed
