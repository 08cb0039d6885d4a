// Runs the real binary.
#pragma once

#include <filesystem>
#include <string>

#include "base/json.h"

namespace heed::testing {

struct Outcome {
  int status = 0;
  std::string out;  // standard output
  std::string err;  // standard error
};

// `heed ARGUMENTS`, through the shell; `before` comes first, such as "echo text |" or "NO_COLOR=1".
Outcome run_heed(const std::string& arguments, const std::string& before = "");

// The document of a command that is to succeed and print that and nothing else.
Json json_of(const std::string& arguments, const std::string& before = "");

// A small random model with a tokenizer, made once for the program's life.
const std::filesystem::path& model_directory();

// "-m DIRECTORY -t 1 " of that model.
std::string with_model();

// The ids of a list of tokens, [{"id": 5, "text": "a"}, …].
Json ids_of(const Json& tokens);

}  // namespace heed::testing
