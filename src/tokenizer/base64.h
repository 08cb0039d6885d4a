// Base64 (RFC 4648) with padding.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace heed {

// Nothing for a text that is not base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace heed
