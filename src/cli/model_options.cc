#include "cli/model_options.h"

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <charconv>
#include <cstdio>

#include "base/error.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/terminal/text.h"
#include "tokenizer/utf8.h"

namespace heed::cli {

void add_model_option(CLI::App& command, std::string& model) {
  command
      .add_option("-m,--model", model,
                  "Model directory, its .safetensors file, or the built-in model \"starter\"")
      ->capture_default_str()
      ->type_name("DIR|FILE");
}

void add_dtype_option(CLI::App& command, std::string& dtype) {
  command
      .add_option("--dtype", dtype,
                  "What weights are shortened to when the model is loaded: f32 (not at all), bf16, "
                  "int8 or int4 [what the model is stored in]")
      ->type_name("DTYPE");
}

void add_cache_type_option(CLI::App& command, std::string& cache_type) {
  command
      .add_option("--cache-type", cache_type,
                  "What keys and values of tokens read are held as: f32, bf16 or int8")
      ->capture_default_str()
      ->type_name("TYPE");
}

LoadedModel load_model_as(const std::string& model, const std::string& dtype) {
  using enum kernels::WeightFormat;
  const kernels::WeightFormat wanted = dtype.empty() ? f32 : kernels::parse_weight_format(dtype);
  LoadedModel loaded = load_model(model);
  if (dtype.empty()) return loaded;
  const kernels::WeightFormat stored = loaded.gpt.parameters().prepared_format();
  require(stored == f32 || wanted == f32 || wanted == stored, ErrorCode::unsupported,
          "'{}' is stored in {}, and would be rounded twice in {}: take the model that it was "
          "converted from",
          model, kernels::weight_format_name(stored), kernels::weight_format_name(wanted));
  if (wanted != stored) loaded.gpt.parameters().prepare(wanted);
  return loaded;
}

void add_text_options(CLI::App& command, TextOptions& options) {
  command.add_option("text", options.words, "The text; without it, what comes through a pipe")
      ->type_name("TEXT");
  command.add_option("--tokens", options.tokens, "Token ids instead of a text, such as 5,17,4")
      ->type_name("IDS");
}

std::vector<std::int32_t> parse_token_ids(const std::string& text) {
  std::vector<std::int32_t> ids;
  const char* position = text.data();
  const char* const end = text.data() + text.size();
  const auto is_separator = [](char c) { return c == ',' || c == ' ' || c == '\n'; };
  while (position < end) {
    if (is_separator(*position)) {
      ++position;
      continue;
    }
    std::int32_t id = 0;
    const auto [next, error] = std::from_chars(position, end, id);
    if (error != std::errc{} || id < 0 || (next < end && !is_separator(*next))) {
      fail_usage(fmt::format("'{}' is not a list of token ids; write them like 5,17,4", text));
    }
    ids.push_back(id);
    position = next;
  }
  if (ids.empty()) fail_usage("there are no token ids in '" + text + "'; write them like 5,17,4");
  return ids;
}

std::int32_t single_token(const LoadedModel& model, const std::string& text,
                          const std::string& option) {
  const std::int64_t size = model.gpt.config().vocabulary_size;
  if (text.size() > 1 && text[0] == '#' &&
      text.find_first_not_of("0123456789", 1) == std::string::npos) {
    const std::int32_t id = parse_token_ids(text.substr(1)).front();
    if (id >= size) fail_usage(fmt::format("{} {}: ids are 0 to {}", option, text, size - 1));
    return id;
  }
  const std::vector<std::int32_t> ids = model.encode(text);
  if (ids.size() == 1) return ids.front();
  std::string pieces;
  for (const std::string& bytes : model.token_bytes(ids)) {
    pieces += (pieces.empty() ? "" : " | ") + visible(bytes);
  }
  fail_usage(fmt::format(
      "{} {} is {} tokens, not one: {}{}", option, in_quotes(text), ids.size(), pieces,
      text.starts_with(' ') ? "" : "; a word after a space is often one, such as ' " + text + "'"));
}

std::string read_standard_input(const std::string& wanted) {
  if (isatty(STDIN_FILENO) == 1) fail_usage(wanted);
  std::string text;
  char buffer[65536];
  std::size_t count = 0;
  while ((count = std::fread(buffer, 1, sizeof buffer, stdin)) > 0) text.append(buffer, count);
  require(std::ferror(stdin) == 0, ErrorCode::input_output, "cannot read standard input");
  return text;
}

namespace {

std::vector<std::int32_t> read_any_tokens(const TextOptions& options, const LoadedModel& model) {
  if (!options.tokens.empty()) {
    if (!options.words.empty()) fail_usage("give either a text or --tokens, not both");
    return parse_token_ids(options.tokens);
  }
  std::string text;
  if (options.words.empty()) {
    text = read_standard_input("what text? Give it as an argument, as --tokens IDS or in a pipe");
    if (text.ends_with('\n')) text.pop_back();
  }
  for (const std::string& word : options.words) text += (text.empty() ? "" : " ") + word;
  return model.encode(text);
}

}  // namespace

std::vector<std::int32_t> read_tokens(const TextOptions& options, const LoadedModel& model) {
  std::vector<std::int32_t> tokens = read_any_tokens(options, model);
  const std::int64_t context = model.gpt.config().context;
  require(std::ssize(tokens) <= context, ErrorCode::invalid_argument,
          "the text has {} tokens, more than the model's context of {}; shorten it", tokens.size(),
          context);
  return tokens;
}

OrderedJson tokens_json(const LoadedModel& model, const std::vector<std::int32_t>& tokens) {
  OrderedJson list = OrderedJson::array();
  for (const std::int32_t token : tokens) {
    list.push_back({{"id", token}, {"text", model.token_bytes(token)}});
  }
  return list;
}

}  // namespace heed::cli
