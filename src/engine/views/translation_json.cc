#include "engine/views/translation_json.h"

#include <algorithm>

#include "base/json.h"
#include "engine/views/token_json.h"

namespace heed {

OrderedJson aligned_words_json(std::span<const AlignedWord> links) {
  OrderedJson list = OrderedJson::array();
  for (const AlignedWord& link : links) {
    list.push_back(
        {{"target", link.target}, {"source", link.source}, {"weight", json_number(link.weight)}});
  }
  return list;
}

OrderedJson head_alignments_json(std::vector<HeadAlignment> heads) {
  std::ranges::stable_sort(heads, {},
                           [](const HeadAlignment& head) { return head.counts.error_rate(); });
  OrderedJson list = OrderedJson::array();
  for (const HeadAlignment& head : heads) {
    list.push_back({{"layer", head.layer},
                    {"head", head.head},
                    {"error_rate", json_number(head.counts.error_rate())},
                    {"precision", json_number(head.counts.precision())},
                    {"recall", json_number(head.counts.recall())}});
  }
  return list;
}

OrderedJson greedy_translation_json(const LoadedModel& translator,
                                    const GreedyTranslation& translation) {
  return {{"text", translator.target_text(translation.tokens)},
          {"tokens", tokens_json(translator, translation.tokens)},
          {"finished", translation.is_finished()},
          {"log_probability", json_number(translation.log_probability)}};
}

OrderedJson hypothesis_json(const LoadedModel& translator, const TokenHypothesis& hypothesis) {
  const Tokenizer& target = translator.require_tokenizer();
  OrderedJson tokens = OrderedJson::array();
  for (const std::int32_t id : hypothesis.tokens) {
    const bool is_known = id < target.vocabulary_size();
    tokens.push_back(token_json(id, is_known ? target.token_bytes(id) : fmt::format("#{}", id)));
  }
  return {{"text", translator.target_text(hypothesis.tokens)},
          {"score", hypothesis.score},
          {"log_probability", hypothesis.log_probability},
          {"finished", hypothesis.finished},
          {"tokens", std::move(tokens)}};
}

}  // namespace heed
