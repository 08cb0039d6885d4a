#include <fmt/format.h>

#include "cli/attend.h"
#include "cli/output.h"

namespace heed::cli {
namespace {

OrderedJson vector_json(const std::vector<float>& vector) {
  OrderedJson list = OrderedJson::array();
  for (const float value : vector) list.push_back(json_number(value));
  return list;
}

}  // namespace

OrderedJson head_statistics_json(const RankedHead& head) {
  const HeadStatistics& statistics = head.statistics;
  return {{"layer", head.layer},
          {"head", head.head},
          {"score", json_number(head.score)},
          {"entropy", json_number(statistics.entropy)},
          {"evenness", json_number(statistics.evenness)},
          {"first", json_number(statistics.first)},
          {"self", json_number(statistics.self)},
          {"previous", json_number(statistics.previous)},
          {"distance", json_number(statistics.distance)},
          {"telling", json_number(statistics.telling)}};
}

OrderedJson pattern_json(View<const float> pattern) {
  OrderedJson rows = OrderedJson::array();
  for (std::int64_t t = 0; t < pattern.extent(0); ++t) {
    OrderedJson row = OrderedJson::array();
    for (std::int64_t s = 0; s < pattern.extent(1); ++s) row.push_back(json_number(pattern(t, s)));
    rows.push_back(std::move(row));
  }
  return rows;
}

OrderedJson word_walk_json(const AttendedText& text, const TextWord& word, const WordWalk& walk) {
  OrderedJson answers = OrderedJson::array();
  for (const KeyAnswer& answer : walk.answers) {
    answers.push_back({{"position", answer.position},
                       {"token", text.bytes[answer.position]},
                       {"masked", answer.masked},
                       {"key", vector_json(answer.key)},
                       {"value", vector_json(answer.value)},
                       {"product", json_number(answer.product)},
                       {"scaled", json_number(answer.scaled)},
                       {"score", answer.masked ? OrderedJson(nullptr) : json_number(answer.scaled)},
                       {"share", json_number(answer.share)},
                       {"value_length", json_number(answer.value_length)},
                       {"contribution_length", json_number(answer.contribution_length)}});
  }
  return {{"word", word.text},
          {"word_tokens", {word.begin, word.end}},
          {"position", walk.position},
          {"layer", walk.layer},
          {"head", walk.head},
          {"head_size", walk.head_size},
          {"query", vector_json(walk.query)},
          {"answers", std::move(answers)},
          {"output", vector_json(walk.output)},
          {"concatenation", vector_json(walk.concatenation)},
          {"head_projection", vector_json(walk.head_projection)},
          {"attention_out", vector_json(walk.attention_out)},
          {"residual_before", vector_json(walk.residual_before)},
          {"residual_after", vector_json(walk.residual_after)}};
}

}  // namespace heed::cli
