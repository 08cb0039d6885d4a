#include "engine/views/shown_edge_json.h"

#include <optional>
#include <string>

#include "base/json.h"
#include "engine/views/token_json.h"

namespace heed {
namespace {

OrderedJson token_change_json(const LoadedModel& model, const TokenChange& change) {
  return {{"token", token_json(model, change.token)},
          {"before", json_number(change.before)},
          {"after", json_number(change.after)}};
}

OrderedJson measured_json(const std::optional<double>& value) {
  return value ? OrderedJson(json_number(*value)) : OrderedJson(nullptr);
}

}  // namespace

OrderedJson shown_edge_json(const LoadedModel& model, std::span<const std::int32_t> tokens,
                            const ShownEdge& shown) {
  const AttentionEdge& edge = shown.effect.edge;
  std::string text;
  for (std::int64_t s = edge.key.begin; s < edge.key.end; ++s) {
    text += token_text(model, tokens[static_cast<std::size_t>(s)]);
  }
  OrderedJson gained = OrderedJson::array();
  for (const TokenChange& each : shown.gained) gained.push_back(token_change_json(model, each));
  return {{"layer", edge.head.layer},
          {"head", edge.head.head},
          {"query", shown.query},
          {"key", {{"begin", edge.key.begin}, {"end", edge.key.end}, {"text", text}}},
          {"weight", json_number(shown.effect.weight)},
          {"cut", json_number(shown.effect.cut)},
          {"direct", measured_json(shown.effect.direct)},
          {"replaced", measured_json(shown.effect.replaced)},
          {"others", {{"count", shown.others}, {"cut", measured_json(shown.others_cut)}}},
          {"threshold", json_number(shown.threshold)},
          {"decides", shown.decides()},
          {"word_cut", json_number(shown.word_cut)},
          {"likeliest", token_change_json(model, shown.likeliest)},
          {"likeliest_without", token_change_json(model, shown.likeliest_without)},
          {"gained", std::move(gained)},
          {"measured", shown.measured},
          {"positions_read", shown.positions_read}};
}

}  // namespace heed
