#include "microworld/story.h"

#include <array>

#include "base/json.h"

namespace heed::microworld {
namespace {

OrderedJson span_json(const Span& span, std::string_view text) {
  return {{"text", span.in(text)}, {"begin", span.begin}, {"end", span.end}};
}

}  // namespace

std::span<const std::string_view> story_kind_names() {
  static constexpr std::array<std::string_view, story_kind_count> names = {
      "creature", "market", "outing", "letter", "tale", "finding", "mystery", "album"};
  return names;
}

std::string_view story_kind_name(StoryKind kind) {
  return story_kind_names()[static_cast<std::size_t>(kind)];
}

std::string to_json_line(const Story& story) {
  OrderedJson line;
  line["index"] = story.index;
  line["kind"] = story_kind_name(story.kind);
  line["text"] = story.text;
  line["log_probability"] = story.log_probability;

  line["senses"] = OrderedJson::array();
  for (const SenseMark& mark : story.senses) {
    line["senses"].push_back({{"word", mark.word},
                              {"sense", mark.sense},
                              {"begin", mark.span.begin},
                              {"end", mark.span.end},
                              {"recalled", mark.recalled}});
  }
  line["names"] = OrderedJson::array();
  for (const NameMark& mark : story.names) {
    line["names"].push_back({{"name", mark.name},
                             {"referent", mark.referent},
                             {"begin", mark.span.begin},
                             {"end", mark.span.end}});
  }
  line["adjectives"] = OrderedJson::array();
  for (const AdjectiveMark& mark : story.adjectives) {
    OrderedJson adjectives = OrderedJson::array();
    for (const Span& span : mark.adjectives) adjectives.push_back(span_json(span, story.text));
    line["adjectives"].push_back(
        {{"noun", span_json(mark.noun, story.text)}, {"adjectives", std::move(adjectives)}});
  }
  line["evidence"] = OrderedJson::array();
  for (const EvidenceMark& mark : story.evidence) {
    OrderedJson evidence = OrderedJson::array();
    for (const Span& span : mark.evidence) evidence.push_back(span_json(span, story.text));
    line["evidence"].push_back({{"subject", mark.subject},
                                {"word", span_json(mark.word, story.text)},
                                {"evidence", std::move(evidence)},
                                {"answer", span_json(mark.answer, story.text)}});
  }
  line["culprit"] = nullptr;
  if (story.culprit) {
    line["culprit"] = {{"name", story.culprit->name},
                       {"suspects", story.culprit->suspects},
                       {"clue", span_json(story.culprit->clue, story.text)},
                       {"clue_name", span_json(story.culprit->clue_name, story.text)},
                       {"answer", span_json(story.culprit->answer, story.text)}};
  }
  return line.dump();
}

}  // namespace heed::microworld
