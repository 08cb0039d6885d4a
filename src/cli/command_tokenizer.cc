// heed tokenizer train: learn a byte-level byte-pair tokenizer.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/number_option.h"
#include "cli/output.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/text.h"
#include "tokenizer/train_byte_pair.h"

namespace heed::cli {
namespace {

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
