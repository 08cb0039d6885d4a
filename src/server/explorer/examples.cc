#include "server/explorer/examples.h"

#include <fmt/format.h>

#include <array>

#include "microscope/attention/text_words.h"

namespace heed::server {
namespace {

constexpr std::array<Example, 3> general{{
    {.id = "question",
     .title = "A question",
     .text = "The capital of France is",
     .note = "Which word does the model attend to before it answers?"},
    {.id = "names",
     .title = "Two names",
     .text = "When Mary and John went to the shop, John gave a drink to",
     .note = "One of the names has already been said twice: a head that notices can tell who is "
             "left."},
    {.id = "repeat",
     .title = "The same again",
     .text = "One two three four five, one two three",
     .note =
         "A repeated text: look for heads that attend to the token after the first occurrence."},
}};

// As the page's links write changes: a part that is switched off, or @position=id.
std::string change_in_link(const Trial& trial, const LoadedModel& model,
                           const std::vector<TextWord>& words) {
  if (!trial.change.empty()) return std::string(trial.change);
  const std::int64_t position = find_word(words, trial.replaced, trial.occurrence).begin;
  return fmt::format("@{}={}", position, model.encode(trial.replacement).front());
}

OrderedJson trials_json(const Example& example, const LoadedModel& model,
                        const std::vector<TextWord>& words) {
  OrderedJson list = OrderedJson::array();
  for (const Trial& trial : example.trials) {
    list.push_back({{"label", trial.says},
                    {"changes", change_in_link(trial, model, words)},
                    {"token", trial.token},
                    {"before", trial.before},
                    {"after", trial.after}});
  }
  return list;
}

}  // namespace

std::span<const Example> general_examples() { return general; }

OrderedJson examples_json(const LoadedModel& model) {
  OrderedJson list = OrderedJson::array();
  for (const Example& example : model.is_starter ? starter_examples() : general_examples()) {
    OrderedJson row{{"id", example.id}, {"title", example.title}, {"text", example.text}};
    if (model.is_starter) {
      const std::vector<std::string> bytes = model.token_bytes(model.encode(example.text));
      const std::vector<TextWord> words = words_of(bytes);
      row["layer"] = example.layer;
      row["head"] = example.head;
      row["position"] = find_word(words, example.word).last();
      row["trials"] = trials_json(example, model, words);
    }
    row["note"] = example.note;
    list.push_back(std::move(row));
  }
  return list;
}

}  // namespace heed::server
