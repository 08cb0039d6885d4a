// Handling of fields of OpenAI's requests that heed does not use.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/exchange.h"
#include "server/fields.h"

namespace heed::server {

// Throws FieldError for a field that would change the meaning of the reply and is not supported,
// such as "tools", unless its value has no effect.
void refuse_unsupported(const Fields& fields);

// The same for one field of that kind.
void refuse_field(const Fields& fields, std::string_view name);

// "ignored fields: foo, bar": the fields that were not read, except those of OpenAI's that have no
// effect here, such as "user", and `others`. Printable ASCII of bounded length.
std::optional<std::string> ignored_fields(const Fields& fields,
                                          const std::vector<std::string>& others = {});

inline constexpr const char* warning_header = "X-Heed-Warning";

// Adds the header if there are ignored fields. Call it after all fields have been read.
void warn_of_ignored(const Fields& fields, Reply& reply,
                     const std::vector<std::string>& others = {});

}  // namespace heed::server
