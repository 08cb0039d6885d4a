#include "engine/head_to_show.h"

#include <algorithm>
#include <vector>

#include "base/json.h"
#include "engine/embedded_files.h"
#include "engine/measured_examples.h"
#include "microscope/attention/text_words.h"

namespace heed {
namespace {

// The example of this text whose word is the asked one, and which names a head.
std::optional<Json> example_of(const LoadedModel& model, std::span<const std::int32_t> tokens,
                               const TokenRun& word) {
  const auto files = find_embedded_model(model.embedded_name);
  if (!files) return std::nullopt;
  const Json all = parse_json(files->examples, model.embedded_name + "'s examples");
  for (const Json& each : all) {
    if (!each.contains("layer")) continue;
    if (!std::ranges::equal(model.encode(examples::text_in(each, "text")), tokens)) continue;
    const std::vector<TextWord> words = words_of(model.token_bytes(tokens));
    if (find_word(words, examples::text_in(each, "word")).end == word.end) return each;
  }
  return std::nullopt;
}

}  // namespace

HeadToShow head_to_show(const LoadedModel& model, std::span<const std::int32_t> tokens,
                        const EdgeQuestion& question, StopFlag stop) {
  HeadToShow shown;
  if (const std::optional<Json> example = example_of(model, tokens, question.word)) {
    shown.head = {example->at("layer").get<std::int64_t>(),
                  example->at("head").get<std::int64_t>()};
    shown.example = examples::text_in(*example, "title");
    shown.caption = examples::text_in(*example, "note");
    return shown;
  }
  shown.edge = edge_to_show(model.transformer, tokens, question, stop);
  if (shown.edge) shown.head = shown.edge->effect.edge.head;
  return shown;
}

}  // namespace heed
