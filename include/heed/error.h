// The one exception type that heed throws.
#pragma once

#include <stdexcept>
#include <string>

namespace heed {

// What went wrong, in terms a caller can act on. The command line turns it into an exit status, a
// server into an HTTP status.
enum class ErrorCode {
  invalid_argument,  // the caller asked for something that makes no sense: mend the call
  not_found,         // a file, a name or a token that does not exist
  corrupt_data,      // input that is damaged, truncated or contradicts itself
  input_output,      // the operating system refused to read or write
  unsupported,       // valid, but outside what heed can do
  out_of_memory,     // more memory than there is, or than the caller allowed
  conflict,          // would overwrite or contradict something that exists
  diverged,          // a computation left the finite numbers
  interrupted,       // stopped on request; everything finished so far is saved
  internal,          // a defect in heed itself
};

// Stable lower-case name of a code, such as "corrupt_data".
const char* error_code_name(ErrorCode code) noexcept;

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace heed
