#include "cli/model_options.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "base/numbers.h"
#include "base/utf8.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/terminal/text.h"
#include "engine/loaded_model.h"
#include "kernels/prepared_weight.h"
#include "model/input_checks.h"

namespace heed::cli {
namespace {

void add_sampling_option(Command command, const SamplingOption& option, SamplingOptions& options) {
  const auto problem = [&option](const std::string& text) {
    SamplingOptions ignored;
    return option.read(ignored, text);
  };
  const auto set = [&option, &options](const std::string& text) { option.read(options, text); };
  command.add_option_function<std::string>(option.flags(), set, option.help)
      ->check(problem)
      ->default_str(option.text(options))
      ->type_name(option.is_whole() ? "N" : "X")
      ->group("Sampling");
}

}  // namespace

void add_model_option(Command command, std::string& model) {
  command
      .add_option("-m,--model", model,
                  "Load a model directory, run, .safetensors or .gguf file, pulled name, "
                  "\"starter\" or \"english\"")
      ->capture_default_str()
      ->type_name("MODEL");
}

void add_dtype_option(Command command, std::string& dtype) {
  command.add_option("--dtype", dtype, "Quantise weights to f32, bf16, int8 or int4 [as stored]")
      ->type_name("DTYPE");
  add_prompt_option(command);
}

void add_prompt_option(Command command) {
  command.add_flag_function(
      "--f32-prompts", [] { kernels::refuse_integers_for_long_rows(); },
      "Beside int8 and int4 weights, compute prompts in f32");
}

void add_cache_type_option(Command command, std::string& cache_type) {
  command.add_option("--cache-type", cache_type, "Set the key-value cache type: f32, bf16 or int8")
      ->capture_default_str()
      ->type_name("TYPE");
}

LoadedModel load_model_as(const std::string& model, const std::string& dtype, StacksWanted stacks) {
  return load_model(model, {.weights = parse_weight_type(dtype)}, stacks);
}

void add_text_file_option(Command command, std::string& file) {
  command.add_option("-f,--text", file, "Read the text from a file")->type_name("FILE");
}

void add_tokens_option(Command command, std::string& tokens) {
  add_list_option(command, "--tokens", tokens, "Give token ids instead of a text, such as 5,17,4")
      ->type_name("ID,…");
}

void add_text_options(Command command, TextOptions& options) {
  command
      .add_option_function<std::string>(
          "TEXT", [&options](const std::string& text) { options.text = text; },
          "The text, as one argument [standard input]")
      ->type_name("TEXT");
  add_text_file_option(command, options.file);
  add_tokens_option(command, options.tokens);
}

std::vector<std::int32_t> parse_token_ids(const std::string& text) {
  std::vector<std::int32_t> ids;
  for (const std::string_view item : split_list(text)) {
    std::int32_t id = 0;
    const char* const end = item.data() + item.size();
    const auto [next, error] = std::from_chars(item.data(), end, id);
    if (error != std::errc{} || id < 0 || next != end) {
      fail_usage(fmt::format("'{}' in '{}' is not a token id; write ids like 5,17,4",
                             item.substr(0, 40), fit(text, 60)));
    }
    ids.push_back(id);
  }
  return ids;
}

std::int32_t single_token(const LoadedModel& model, const std::string& text,
                          const std::string& option) {
  if (text.size() > 1 && text[0] == '#' &&
      text.find_first_not_of("0123456789", 1) == std::string::npos) {
    const std::int32_t id = parse_token_ids(text.substr(1)).front();
    const std::int64_t size = model.stack(PairSide::target).vocabulary_size;
    if (id >= size) {
      fail_usage(fmt::format("{} {}: the vocabulary's ids are 0 to {}", option, text, size - 1));
    }
    return id;
  }
  const std::vector<std::int32_t> ids = model.encode_part(text);
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
  while (true) {
    const ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    require(count > 0, ErrorCode::input_output, "cannot read standard input: {}",
            std::strerror(errno));
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

std::string read_text(const TextOptions& options) {
  const int sources =
      (options.text ? 1 : 0) + (options.file.empty() ? 0 : 1) + (options.tokens.empty() ? 0 : 1);
  if (sources > 1) fail_usage("give one of TEXT, --text FILE and --tokens IDS, not both");
  if (options.text) return *options.text;
  std::string text =
      options.file.empty()
          ? read_standard_input("there is no text: give TEXT, --text FILE, --tokens IDS or a pipe")
          : read_text_file(options.file);
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::vector<std::int32_t> read_tokens(const TextOptions& options, const LoadedModel& model) {
  const bool has_ids = !options.tokens.empty() && !options.text && options.file.empty();
  std::vector<std::int32_t> tokens =
      has_ids ? parse_token_ids(options.tokens) : model.encode(read_text(options));
  require_text_fits(model.transformer.specification(), tokens);
  return tokens;
}

void add_sampling_options(Command command, SamplingOptions& options) {
  for (const SamplingOption& option : sampling_options()) {
    if (!option.is_seed()) add_sampling_option(command, option, options);
  }
  // Read after --temp, in whatever order they are given.
  command
      .add_flag_function(
          "--greedy", [&options] { options.temperature = 0; },
          "Always choose the most likely token")
      ->group("Sampling");
}

void add_sampling_seed_option(Command command, SamplingOptions& options) {
  for (const SamplingOption& option : sampling_options()) {
    if (option.is_seed()) add_sampling_option(command, option, options);
  }
}

}  // namespace heed::cli
