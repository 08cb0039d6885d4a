// heed reading: what a model has read, which words of a text it has not, and the file that says so.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "engine/loaded_model.h"
#include "engine/views/reading_json.h"
#include "tokenizer/reading.h"

namespace heed::cli {
namespace {

struct ReadingOptions {
  std::string model = "starter";
  std::optional<std::string> text;
  std::vector<std::string> data;
  std::vector<std::string> targets;
  std::string title;
  std::int64_t tokens = 0;
  double passes = 1;
  std::string out;
  bool json = false;
};

WordSet words_of_files(const std::vector<std::string>& files, double passes) {
  WordCounter counter;
  for (const std::string& file : files) {
    const MappedFile mapped(file);
    counter.add(without_byte_order_mark(mapped.text()));
  }
  return counter.read_words(passes);
}

// reading.json of a model that was trained elsewhere, from the text that it was trained on.
void write_reading(const ReadingOptions& options) {
  if (options.title.empty() || options.out.empty()) {
    fail_usage("--data writes what a model has read: give --title TEXT and --out DIR as well");
  }
  ReadingRecord record{.title = options.title,
                       .tokens = options.tokens,
                       .words = words_of_files(options.data, options.passes)};
  if (!options.targets.empty()) {
    record.target_words = words_of_files(options.targets, options.passes);
  }
  const std::string text = reading_text(record);
  const std::filesystem::path file = std::filesystem::path(options.out) / reading_file_name;
  parse_reading(text, file.string());  // refuses a title that could not be read again
  write_text_file(file, text);
  if (options.json) return print_json(reading_json(record));
  print(fmt::format("{} in {}\n", counted(record.words->size(), "word"), file.string()));
}

void print_reading(const ReadingRecord* record, const std::string& name, const Ink& ink) {
  if (record == nullptr) {
    print(name + ink.quiet("  it is not known what this model has read\n"));
    return;
  }
  std::string counts = counted(record->tokens, "token");
  if (record->words) counts += ", " + counted(record->words->size(), "word");
  if (record->target_words) {
    counts += fmt::format(" and {} of its targets", grouped(record->target_words->size()));
  }
  print(record->title + "\n" + ink.quiet(counts) + "\n");
}

void print_unread(const std::optional<UnreadWords>& unread, UnreadFor purpose, const Ink& ink) {
  if (!unread) return;
  const std::string note = unread_note(*unread, purpose);
  print((note.empty() ? ink.quiet("It has read every word of this text.") : note) + "\n");
}

void read(const ReadingOptions& options) {
  if (!options.data.empty()) return write_reading(options);
  if (!options.targets.empty() || !options.title.empty() || !options.out.empty()) {
    fail_usage("--target, --title and --out write what a model has read: they need --data FILE");
  }
  const LoadedModel model = load_model(options.model, {}, StacksWanted::any);
  std::optional<UnreadWords> unread;
  if (options.text) unread = unread_in(model, *options.text);
  const UnreadFor purpose = unread_for(model.is_translator() ? PairSide::source : PairSide::target);
  if (options.json) {
    return print_json({{"model", model.name},
                       {"read", read_json(model.reading)},
                       {"unread", unread_json(unread, purpose)}});
  }
  const Ink ink(standard_output());
  print_reading(model.reading.get(), model.name, ink);
  print_unread(unread, purpose, ink);
}

}  // namespace

void add_reading_command(Command app) {
  Command command =
      add_command(app, "reading", "Say what a model has read, and which words it has not");
  auto options = std::make_shared<ReadingOptions>();
  add_model_option(*command, options->model);
  command
      ->add_option_function<std::string>(
          "TEXT", [options](const std::string& text) { options->text = text; },
          "Name the words of this text that it has not read")
      ->type_name("TEXT");
  command->add_option("--data", options->data, "Write what a model learned from these texts")
      ->type_name("FILE…");
  command->add_option("--target", options->targets, "Texts of a translator's target language")
      ->type_name("FILE…");
  command->add_option("--title", options->title, "Say what was read, in one line")
      ->type_name("TEXT");
  command->add_option("--tokens", options->tokens, "Tokens that training read")
      ->capture_default_str()
      ->check(at_least(0));
  command->add_option("--passes", options->passes, "Times that training read the texts")
      ->capture_default_str();
  command->add_option("-o,--out", options->out, "Write reading.json into this directory")
      ->type_name("DIR");
  add_json_option(*command, options->json);
  command->footer(
      "`heed train` writes the same beside each model. A word counts from its tenth reading on.");
  command->callback([options] { read(*options); });
}

}  // namespace heed::cli
