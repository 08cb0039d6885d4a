// How commands ask for a model and for a text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/loaded_model.h"

namespace CLI {
class App;
}

namespace heed::cli {

// -m/--model.
void add_model_option(CLI::App& command, std::string& model);

// --dtype: what the model's matrices are shortened to while it runs; empty: as they are stored.
void add_dtype_option(CLI::App& command, std::string& dtype);

// --cache-type: what keys and values of the positions read are held as.
void add_cache_type_option(CLI::App& command, std::string& cache_type);

// The model, its matrices prepared; empty: as they are stored, and f32 of a shortened model gives
// what its matrices stand for. Throws Error{invalid_argument} for an unknown dtype,
// Error{unsupported} for one that would round a shortened model again.
LoadedModel load_model_as(const std::string& model, const std::string& dtype);

// A text: TEXT arguments, joined by spaces; token ids (--tokens 5,17); or what comes through a
// pipe.
struct TextOptions {
  std::vector<std::string> words;
  std::string tokens;
};
void add_text_options(CLI::App& command, TextOptions& options);

// The ids of the text asked for. One newline at the end of a piped text is left out: `echo` put it
// there. Throws Error{invalid_argument} for no text, an empty one, ids that are none,
// or more of them than the model's context holds.
std::vector<std::int32_t> read_tokens(const TextOptions& options, const LoadedModel& model);

// "5,17, 4" as ids.
std::vector<std::int32_t> parse_token_ids(const std::string& text);

// The one token that `text` is, or the id 17 written as #17. Throws Error{invalid_argument} naming
// `option` and the tokens where there are several.
std::int32_t single_token(const LoadedModel& model, const std::string& text,
                          const std::string& option);

// All of standard input; for a terminal, Error{invalid_argument} with `wanted`: nobody would know
// that the command waits.
std::string read_standard_input(const std::string& wanted);

// [{"id": 17, "text": " mole"}, …]
OrderedJson tokens_json(const LoadedModel& model, const std::vector<std::int32_t>& tokens);

}  // namespace heed::cli
