// Functions that throw errors: `require` validates external input, `check` guards internal
// invariants.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "heed/error.h"

namespace heed {

template <class... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> message, Args&&... args) {
  throw Error(code, fmt::format(message, std::forward<Args>(args)...));
}

// Throws Error{code, message} unless `condition` holds. The message names the offending value and
// what was expected instead.
template <class... Args>
void require(bool condition, ErrorCode code, fmt::format_string<Args...> message, Args&&... args) {
  if (!condition) [[unlikely]] {
    throw Error(code, fmt::format(message, std::forward<Args>(args)...));
  }
}

// Throws Error{internal} unless `condition` holds: a failure is a bug in heed. The default
// arguments are evaluated at the call (std::source_location needs a newer Clang).
void check(bool condition, const char* invariant, const char* function = __builtin_FUNCTION(),
           int line = __builtin_LINE());

}  // namespace heed
