// Parses a template into statements.
#pragma once

#include <string_view>

#include "chat/syntax.h"

namespace heed::chat {

// Throws Error{corrupt_data} for what is not Jinja, Error{unsupported} for what is, but outside the
// subset, and Error{invalid_argument} for a limit; all with `name` and the line.
Block parse_template(std::string_view source, std::string_view name);

}  // namespace heed::chat
