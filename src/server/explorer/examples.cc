#include "server/explorer/examples.h"

#include <array>
#include <string_view>

#include "base/json.h"
#include "engine/measured_examples.h"
#include "engine/starter.h"

namespace heed::server {
namespace {

struct Example {
  std::string_view id, title, text, note;
};

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

OrderedJson examples_json(const LoadedModel& model) {
  if (model.is_starter) {
    return examples_for_page(model,
                             parse_json(starter_files()->examples, "the starter's examples"));
  }
  OrderedJson list = OrderedJson::array();
  for (const Example& example : general) {
    list.push_back({{"id", example.id},
                    {"title", example.title},
                    {"text", example.text},
                    {"note", example.note}});
  }
  return list;
}

}  // namespace heed::server
