#include "base/error.h"

#include "base/utf8.h"

namespace heed {

Error::Error(ErrorCode code, const std::string& message)
    : std::runtime_error(escape_controls(message)), code_(code) {}

const char* error_code_name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::not_found: return "not_found";
    case ErrorCode::corrupt_data: return "corrupt_data";
    case ErrorCode::input_output: return "input_output";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::out_of_memory: return "out_of_memory";
    case ErrorCode::conflict: return "conflict";
    case ErrorCode::diverged: return "diverged";
    case ErrorCode::interrupted: return "interrupted";
    case ErrorCode::internal: return "internal";
  }
  return "unknown";
}

void check(bool condition, const char* invariant, const char* function, int line) {
  if (!condition) [[unlikely]] {
    fail(ErrorCode::internal, "broken invariant in {} (line {}): {}", function, line, invariant);
  }
}

}  // namespace heed
