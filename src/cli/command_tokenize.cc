// heed tokenize: text to token ids and back.
#include <fmt/format.h>

#include <array>
#include <memory>

#include "base/json.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/number_option.h"
#include "cli/output.h"
#include "cli/terminal/ink.h"
#include "cli/terminal/text.h"
#include "engine/views/token_json.h"

namespace heed::cli {
namespace {

struct TokenizeOptions {
  std::string tokenizer = "starter";
  TextOptions text;
  std::string decode;
  bool no_special = false;
  bool count = false;
  bool json = false;
};

// The text with its tokens on alternating backgrounds.
void print_boundaries(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids,
                      const Ink& ink, int width) {
  constexpr std::array<Rgb, 2> backgrounds{{{214, 228, 255}, {255, 226, 201}}};
  int column = 0;
  std::size_t parity = 0;
  for (const std::int32_t id : ids) {
    const std::string piece = fit(visible(tokenizer.token_bytes(id)), width);
    if (column + display_width(piece) > width) {
      print("\n");
      column = 0;
    }
    print(ink.paint(piece, {0, 0, 0}, backgrounds[parity++ % backgrounds.size()]));
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
  print(shown_text(text));
  if (standard_output().interactive) print("\n");
}

void tokenize(const TokenizeOptions& options) {
  if (!options.decode.empty() && (options.text.any() || options.count)) {
    fail_usage("--decode takes neither a text nor --count");
  }
  const auto tokenizer = load_model_tokenizer(options.tokenizer);
  if (!options.decode.empty()) return decode(options, *tokenizer);
  const std::string text =
      options.text.any()
          ? read_text(options.text)
          : read_standard_input("there is no text: give TEXT, --text FILE or a pipe");
  const std::vector<std::int32_t> ids =
      tokenizer->encode(text, {.special_tokens = !options.no_special});
  if (options.json) {
    if (options.count) return print_json({{"count", ids.size()}});
    OrderedJson tokens = OrderedJson::array();
    for (const std::int32_t id : ids) tokens.push_back(token_json(id, tokenizer->token_bytes(id)));
    return print_json({{"ids", ids}, {"tokens", std::move(tokens)}});
  }
  if (options.count) return print(fmt::format("{}\n", ids.size()));
  const Terminal terminal = standard_output();
  const Ink ink(terminal);
  if (ink.has_colours()) print_boundaries(*tokenizer, ids, ink, terminal.width - 1);
  print_ids(ids);
}

}  // namespace

void add_tokenize_command(Command app) {
  Command command = add_command(app, "tokenize", "Turn text into token ids, or back");
  auto options = std::make_shared<TokenizeOptions>();
  command
      ->add_option_function<std::string>(
          "TEXT", [options](const std::string& text) { options->text.text = text; },
          "The text, as one argument [standard input]")
      ->type_name("TEXT");
  add_text_file_option(*command, options->text.file);
  command
      ->add_option("--tokenizer,-m,--model", options->tokenizer,
                   "Load the tokenizer of a model directory, tokenizer.json or \"starter\"")
      ->capture_default_str()
      ->type_name("DIR|FILE");
  command->add_flag("--no-special", options->no_special,
                    "Treat special tokens such as <|endoftext|> as plain text");
  command->add_flag("--count", options->count, "Print the number of tokens");
  add_list_option(*command, "--decode", options->decode,
                  "Print the text of token ids, such as 5,17,4")
      ->type_name("ID,…");
  add_json_option(*command, options->json);
  command->callback([options] { tokenize(*options); });
}

}  // namespace heed::cli
