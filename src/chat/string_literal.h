// The escape sequences of string literals, as in Python.
#pragma once

#include <string>
#include <string_view>

#include "chat/template_error.h"

namespace heed::chat {

// `text` stands between the quotes. A backslash before any other character stays. Throws
// Error{corrupt_data} for \x, \u and \U without their digits, and Error{unsupported} for \N{name}.
std::string decode_string_literal(std::string_view text, Place place);

}  // namespace heed::chat
