// Forward declarations of JSON documents.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace heed {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

}  // namespace heed
