#include "server/explorer/model_json.h"

#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/files.h"
#include "base/json.h"
#include "engine/embedded_files.h"
#include "engine/measured_examples.h"
#include "engine/views/reading_json.h"
#include "engine/views/report_json.h"
#include "model/parameter_count.h"

namespace heed::server {
namespace {

struct Example {
  std::string_view id, title, text, note;
};

// For models of which nothing has been measured: the notes ask, and claim nothing. The page picks
// the head by its effect.
constexpr std::string_view what_tells = "Which word tells what is meant here?";
constexpr std::string_view what_it_is = "What is “it”? Choose the word and see.";

constexpr std::array<Example, 18> general{{
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
    {.id = "creature",
     .title = "A fluffy blue creature",
     .text = "A fluffy blue creature roamed the verdant forest",
     .note = "Do “creature” and “forest” attend to their adjectives?"},
    {.id = "mole-animal",
     .title = "American shrew mole",
     .text = "American shrew mole",
     .note = what_tells},
    {.id = "mole-quantity",
     .title = "One mole of carbon dioxide",
     .text = "One mole of carbon dioxide",
     .note = what_tells},
    {.id = "mole-skin",
     .title = "Take a biopsy of the mole",
     .text = "Take a biopsy of the mole",
     .note = what_tells},
    {.id = "tower-eiffel",
     .title = "The Eiffel tower",
     .text = "The Eiffel tower",
     .note = what_tells},
    {.id = "tower-miniature",
     .title = "A miniature tower",
     .text = "A miniature tower",
     .note = what_tells},
    {.id = "car",
     .title = "They crashed the car",
     .text = "They crashed the car",
     .note = "What happened to the car?"},
    {.id = "harry-wizard",
     .title = "Harry among wizards",
     .text = "The wizard spoke of spells, of dragons and of Harry",
     .note = what_tells},
    {.id = "harry-prince",
     .title = "Harry, Sussex and William",
     .text = "The Queen spoke of Sussex, of William and of Harry",
     .note = what_tells},
    {.id = "bank-river",
     .title = "The river bank",
     .text = "They sat by the river bank",
     .note = what_tells},
    {.id = "bank-money",
     .title = "Money to the bank",
     .text = "They carried the money to the bank",
     .note = what_tells},
    {.id = "apple-fruit",
     .title = "An orange and an apple",
     .text = "Please buy an orange and an apple",
     .note = what_tells},
    {.id = "apple-company",
     .title = "A phone and an apple",
     .text = "Please buy a phone and an apple",
     .note = what_tells},
    {.id = "pronoun-animal",
     .title = "Too tired to cross",
     .text = "The animal didn't cross the street because it was too tired",
     .note = what_it_is},
    {.id = "pronoun-street",
     .title = "Too wide to cross",
     .text = "The animal didn't cross the street because it was too wide",
     .note = what_it_is},
}};

}  // namespace

OrderedJson dimensions_json(const StackSpecification& config) {
  return {{"vocabulary", config.vocabulary_size},
          {"context", config.context},
          {"channels", config.channels},
          {"layers", config.layers},
          {"heads", config.heads()},
          {"head_size", config.head_size()},
          {"feed_forward", config.feed_forward()},
          {"parameters", count_parameters(config).total}};
}

OrderedJson translator_json(const LoadedModel& translator) {
  const Architecture& architecture = translator.architecture();
  // Those of the microworld, which the built-in translator learned from.
  const OrderedJson languages = translator.embedded_name.empty()
                                    ? OrderedJson(nullptr)
                                    : OrderedJson::array({"English", "German"});
  return {{"name", translator.name},
          {"embedded", !translator.embedded_name.empty()},
          {"parameters", translator.transformer.parameters().size()},
          {"encoder", dimensions_json(architecture.encoder())},
          {"decoder", dimensions_json(architecture.decoder())},
          {"languages", languages},
          {"read", read_json(translator.reading)},
          {"architecture",
           {{"encoder", architecture_json(architecture.encoder())},
            {"decoder", architecture_json(architecture.decoder())}}},
          {"examples", examples_json(translator)}};
}

namespace {

// A built-in model in another format (make static-page) has them in its directory, beside heed's
// own record. A file of that name that is not heed's says nothing.
std::optional<OrderedJson> examples_beside(const LoadedModel& model) {
  constexpr std::size_t max_bytes = std::size_t{1} << 20;
  const std::filesystem::path file = model.directory / "examples.json";
  if (model.reading == nullptr || !std::filesystem::is_regular_file(file)) return {};
  try {
    const Json measured = parse_json(read_text_file(file, max_bytes), file.string());
    if (!measured.is_array() || measured.empty()) return {};
    return examples_for_page(model, measured);
  } catch (const Error&) {
    return {};
  } catch (const Json::exception&) {
    return {};
  }
}

}  // namespace

OrderedJson examples_json(const LoadedModel& model) {
  if (const auto files = find_embedded_model(model.embedded_name)) {
    return examples_for_page(model,
                             parse_json(files->examples, model.embedded_name + "'s examples"));
  }
  if (auto measured = examples_beside(model)) return *std::move(measured);
  OrderedJson list = OrderedJson::array();
  if (model.is_translator()) return list;
  for (const Example& example : general) {
    list.push_back({{"id", example.id},
                    {"title", example.title},
                    {"text", example.text},
                    {"note", example.note}});
  }
  return list;
}

}  // namespace heed::server
