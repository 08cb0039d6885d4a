#include "server/explorer/examples.h"

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
    }
    row["note"] = example.note;
    list.push_back(std::move(row));
  }
  return list;
}

}  // namespace heed::server
