// heed tokenize: text to token ids and back.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <array>
#include <memory>

#include "base/json.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/terminal/ink.h"
#include "cli/terminal/text.h"

namespace heed::cli {
namespace {

struct TokenizeOptions {
  std::string tokenizer = "starter";
  std::vector<std::string> words;
  std::string decode;
  bool no_special = false;
  bool count = false;
  bool json = false;
};

std::string read_text(const TokenizeOptions& options) {
  if (options.words.empty()) {
    return read_standard_input("what text? Give it as an argument or in a pipe");
  }
  std::string text;
  for (const std::string& word : options.words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// The text itself, its tokens on alternating grounds.
void print_boundaries(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids,
                      const Ink& ink, int width) {
  constexpr std::array<Rgb, 2> grounds{{{214, 228, 255}, {255, 226, 201}}};
  int column = 0;
  std::size_t parity = 0;
  for (const std::int32_t id : ids) {
    const std::string piece = fit(visible(tokenizer.token_bytes(id)), width);
    if (column + display_width(piece) > width) {
      print("\n");
      column = 0;
    }
    print(ink.paint(piece, {0, 0, 0}, grounds[parity++ % grounds.size()]));
    column += display_width(piece);
  }
  print("\n\n");
}

void print_ids(const std::vector<std::int32_t>& ids) {
  std::string text;
  for (const std::int32_t id : ids) text += (text.empty() ? "" : ",") + std::to_string(id);
  print(text + "\n");
}

void decode(const TokenizeOptions& options, const Tokenizer& tokenizer) {
  const std::string text = tokenizer.decode(parse_token_ids(options.decode));
  if (options.json) return print_json({{"text", text}});
  print(text);
  if (standard_output().interactive) print("\n");
}

void tokenize(const TokenizeOptions& options) {
  if (!options.decode.empty() && (!options.words.empty() || options.count)) {
    fail_usage("--decode prints the text of its ids; give neither a text nor --count with it");
  }
  const auto tokenizer = load_model_tokenizer(options.tokenizer);
  if (!options.decode.empty()) return decode(options, *tokenizer);
  const std::string text = read_text(options);
  const std::vector<std::int32_t> ids =
      tokenizer->encode(text, {.special_tokens = !options.no_special});
  if (options.json) {
    if (options.count) return print_json({{"count", ids.size()}});
    return print_json({{"ids", ids}});
  }
  if (options.count) return print(fmt::format("{}\n", ids.size()));
  const Terminal terminal = standard_output();
  const Ink ink(terminal);
  if (ink.has_colours()) print_boundaries(*tokenizer, ids, ink, terminal.width - 1);
  print_ids(ids);
}

}  // namespace

void add_tokenize_command(CLI::App& app) {
  CLI::App* command = add_command(app, "tokenize", "Turn text into token ids, or back");
  auto options = std::make_shared<TokenizeOptions>();
  command->add_option("text", options->words, "The text; without it, what comes through a pipe")
      ->type_name("TEXT");
  command
      ->add_option("--tokenizer,-m,--model", options->tokenizer,
                   "Directory with tokenizer.json or vocab.json and merges.txt, or \"starter\"")
      ->capture_default_str()
      ->type_name("DIR");
  command->add_flag("--no-special", options->no_special,
                    "Read special tokens such as <|endoftext|> as plain text");
  command->add_flag("--count", options->count, "Print only how many tokens there are");
  command->add_option("--decode", options->decode, "Print the text of these ids, such as 5,17,4")
      ->type_name("IDS");
  add_json_option(*command, options->json);
  command->callback([options] { tokenize(*options); });
}

}  // namespace heed::cli
