// Results go to standard output, everything else, such as errors, to standard error: through here.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json_fwd.h"

namespace heed::cli {

// Writes to standard output. Throws Error{input_output} when it cannot be written (a full disk).
void print(std::string_view text);
void flush_output();

// Text of a model, a file or a request, for standard output: a pipe gets the bytes as they are; a
// terminal, which obeys control characters, gets them escaped (line breaks and tabs stay).
std::string shown_text(std::string_view text);

// One JSON document and a newline.
void print_json(const OrderedJson& document);

// The exit status of the program.
enum ExitStatus { done = 0, work_failed = 1, usage_error = 2 };

int exit_status(ErrorCode code);

// "heed: message", to standard error, with control characters escaped.
void say(const std::string& message);

// The same for an error that every process which mpirun or srun started may find, before they know
// each other: the first reports it, and the others are ended while they wait.
void report_once(const std::string& message);

}  // namespace heed::cli
