#include "engine/views/nearest_words_json.h"

#include "base/json.h"
#include "engine/views/token_json.h"
#include "microscope/traces/point_names.h"

namespace heed {
namespace {

OrderedJson near_word_json(const LoadedModel& model, const NearWord& word) {
  return {{"token", token_json(model, word.token)}, {"cosine", json_number(word.cosine)}};
}

}  // namespace

OrderedJson nearest_words_json(const LoadedModel& model, const NearestWordsByDepth& found) {
  OrderedJson depths = OrderedJson::array();
  for (std::size_t depth = 0; depth < found.depths.size(); ++depth) {
    const NearestWords& here = found.depths[depth];
    OrderedJson words = OrderedJson::array();
    for (const NearWord& word : here.words) words.push_back(near_word_json(model, word));
    depths.push_back({{"point", point_name(found.points[depth])},
                      {"words", std::move(words)},
                      {"best", near_word_json(model, here.best)},
                      {"chance", json_number(here.chance)}});
  }
  return {{"position", found.position},
          {"shuffles", nearest_word_shuffles},
          {"depths", std::move(depths)}};
}

}  // namespace heed
