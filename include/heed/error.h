// The one exception type that heed throws.
#pragma once

#include <stdexcept>
#include <string>

namespace heed {

// The kind of an error, by what the caller can do about it. The command line maps it to an exit
// status, the server to an HTTP status.
enum class ErrorCode {
  invalid_argument,  // an invalid argument or combination: correct the call
  not_found,         // a file, a name or a token that does not exist
  corrupt_data,      // damaged, truncated or inconsistent input
  input_output,      // the operating system failed to read or write
  unsupported,       // valid, but not supported by heed
  out_of_memory,     // more memory than available or allowed
  conflict,          // would overwrite or contradict existing data
  diverged,          // a computation produced a non-finite number
  interrupted,       // stopped on request; finished work is saved
  internal,          // a defect in heed itself
};

// Stable lower-case name of a code, such as "corrupt_data".
const char* error_code_name(ErrorCode code) noexcept;

// what() is one line of UTF-8: control characters, escape sequences among them, and bytes that are
// not UTF-8 are escaped (\n, \x1B, \u{85}), since messages quote what files and requests hold.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message);

  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace heed
