// The options by which commands take a model and a text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "engine/loaded_model.h"
#include "heed/sampling.h"

namespace heed::cli {

// -m/--model.
void add_model_option(Command command, std::string& model);

// --dtype: the type that matrices are quantised to at load; empty: as they are stored. And
// --f32-prompts.
void add_dtype_option(Command command, std::string& dtype);

// --f32-prompts: refuses integers in prompts.
void add_prompt_option(Command command);

// --cache-type: the type of keys and values in the cache.
void add_cache_type_option(Command command, std::string& cache_type);

// The model with its matrices quantised to `dtype`; f32 of a quantised model stands for the values
// that its matrices encode. Throws Error{invalid_argument} for an unknown dtype,
// Error{unsupported} for one that would quantise a quantised model again.
LoadedModel load_model_as(const std::string& model, const std::string& dtype,
                          StacksWanted stacks = StacksWanted::one);

// A text: the argument TEXT, a file (--text), token ids (--tokens 5,17) or, without any of these,
// standard input.
struct TextOptions {
  std::optional<std::string> text;
  std::string file;
  std::string tokens;

  bool any() const { return text || !file.empty() || !tokens.empty(); }
};
void add_text_options(Command command, TextOptions& options);
void add_text_file_option(Command command, std::string& file);
void add_tokens_option(Command command, std::string& tokens);

// The text as characters; TextOptions::tokens must be empty. Files and standard input lose one
// newline at their end. Throws Error{invalid_argument} for more than one source or none.
std::string read_text(const TextOptions& options);

// The ids of the text. Throws what read_text throws, and Error{invalid_argument} for an empty text,
// for invalid ids and for more tokens than the model's context.
std::vector<std::int32_t> read_tokens(const TextOptions& options, const LoadedModel& model);

// "5,17, 4" as ids. Throws Error{invalid_argument} for anything else.
std::vector<std::int32_t> parse_token_ids(const std::string& text);

// The one token of a text, or of a translator's target, that `text` encodes to, or the id 17
// written as #17. Throws Error{invalid_argument} naming `option` and the tokens where there are
// several.
std::int32_t single_token(const LoadedModel& model, const std::string& text,
                          const std::string& option);

// All of standard input. Throws Error{invalid_argument} with `wanted` where that is a terminal.
std::string read_standard_input(const std::string& wanted);

// How the next token is sampled, from the table of heed/sampling.h: all options but the seed.
void add_sampling_options(Command command, SamplingOptions& options);

void add_sampling_seed_option(Command command, SamplingOptions& options);

}  // namespace heed::cli
