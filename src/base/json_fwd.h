// The names of JSON documents, for headers that only pass them on.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace heed {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

}  // namespace heed
