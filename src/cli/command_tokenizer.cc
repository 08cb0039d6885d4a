// heed tokenize: text to token ids and back; heed tokenizer: learns one from a text.
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/json.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "engine/views/token_json.h"
#include "tokenizer/train_byte_pair.h"

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

struct TokenizerTrainOptions {
  std::vector<std::filesystem::path> data;
  std::filesystem::path out;
  BytePairTrainingOptions training{.vocabulary_size = 1024};
  bool force = false;
  bool json = false;
};

void train_tokenizer(const TokenizerTrainOptions& options) {
  const std::filesystem::path file = options.out / tokenizer_file_name;
  require(options.force || !std::filesystem::exists(file), ErrorCode::conflict,
          "'{}' exists; choose another --out or replace it with --force", file.string());
  ProgressLine line;
  const auto tokenizer =
      train_byte_pair_tokenizer(std::span<const std::filesystem::path>(options.data),
                                options.training, line.callback(), interrupt_flag());
  line.clear();
  tokenizer->save(options.out);
  if (options.json) {
    return print_json(
        {{"tokenizer", file.string()}, {"vocabulary_size", tokenizer->vocabulary_size()}});
  }
  const std::int64_t learned = tokenizer->vocabulary_size();
  if (learned < options.training.vocabulary_size) {
    print(fmt::format("fewer than {} tokens: no other pair occurs {} times\n",
                      options.training.vocabulary_size, options.training.min_frequency));
  }
  print(fmt::format("{}, saved in {}\n", counted(learned, "token"), file.string()));
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

void add_tokenizer_command(Command app) {
  Command group = app.add_subcommand("tokenizer", "Train tokenizers");
  group->require_subcommand(1);
  Command command = add_command(*group, "train", "Learn a byte-level BPE tokenizer from text");
  auto options = std::make_shared<TokenizerTrainOptions>();
  command->add_option("--data", options->data, "Learn from these text files")
      ->required()
      ->type_name("FILE");
  command->add_option("-o,--out", options->out, "Write tokenizer.json to this directory")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--vocabulary-size", options->training.vocabulary_size,
                   "Learn at most N tokens, including the 256 bytes")
      ->capture_default_str()
      ->check(between(1, 1 << 24));
  command
      ->add_option("--min-frequency", options->training.min_frequency,
                   "Merge pairs that occur at least N times")
      ->capture_default_str()
      ->check(at_least(0));
  command
      ->add_option("--special", options->training.special_tokens,
                   "Add a special token; repeat for several")
      ->capture_default_str()
      ->type_name("TOKEN");
  command->add_flag("--force", options->force, "Replace an existing tokenizer");
  add_json_option(*command, options->json);
  command->callback([options] { train_tokenizer(*options); });
}

}  // namespace heed::cli
