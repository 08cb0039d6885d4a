#include "engine/pair_json.h"

#include <algorithm>
#include <numeric>

#include "base/json.h"
#include "engine/views/reading_json.h"
#include "engine/views/report_json.h"
#include "engine/views/token_json.h"

namespace heed {
namespace {

OrderedJson token_probability_json(const LoadedTranslator& model, std::int32_t token,
                                   double probability) {
  return {{"token", pair_token_json(model, PairSide::target, token)},
          {"probability", json_number(probability)}};
}

}  // namespace

OrderedJson pair_token_json(const LoadedTranslator& model, PairSide side, std::int32_t id) {
  return token_json(id, model.token_bytes(side, std::span(&id, 1)).front());
}

OrderedJson pair_tokens_json(const LoadedTranslator& model, PairSide side,
                             std::span<const std::int32_t> ids) {
  OrderedJson tokens = OrderedJson::array();
  for (const std::int32_t id : ids) tokens.push_back(pair_token_json(model, side, id));
  return tokens;
}

OrderedJson pair_text_json(const LoadedTranslator& model, PairSide side,
                           std::span<const std::int32_t> ids) {
  return {{"tokens", pair_tokens_json(model, side, ids)},
          {"words", units_json(model.words(side, ids))},
          {"unread",
           unread_json(unread_in(model, side, ids),
                       side == PairSide::source ? UnreadFor::translation : UnreadFor::prediction)}};
}

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

OrderedJson pair_effects_json(const LoadedTranslator& model, std::span<const PairEffect> effects) {
  OrderedJson list = OrderedJson::array();
  for (std::size_t position = 0; position < effects.size(); ++position) {
    const PairEffect& effect = effects[position];
    OrderedJson actual = nullptr;
    if (effect.next) {
      actual = {{"token", pair_token_json(model, PairSide::target, *effect.next)},
                {"before", json_number(effect.before)},
                {"after", json_number(effect.after)}};
    }
    list.push_back({{"position", position},
                    {"moved", json_number(effect.moved)},
                    {"actual", std::move(actual)}});
  }
  return list;
}

OrderedJson greedy_translation_json(const LoadedTranslator& model,
                                    const GreedyTranslation& translation) {
  return {{"text", model.target_text(translation.tokens)},
          {"tokens", pair_tokens_json(model, PairSide::target, translation.tokens)},
          {"finished", translation.is_finished()},
          {"log_probability", json_number(translation.log_probability)}};
}

OrderedJson pair_lens_json(const LoadedTranslator& model, const LogitLens& lens) {
  OrderedJson list = OrderedJson::array();
  for (std::size_t i = 0; i < lens.points.size(); ++i) {
    const LensCell& cell = lens.at(static_cast<std::int64_t>(i), 0);
    OrderedJson top = OrderedJson::array();
    for (const LensToken& token : cell.top) {
      top.push_back(token_probability_json(model, token.token, token.probability));
    }
    list.push_back({{"point", point_name(lens.points[i])},
                    {"top", std::move(top)},
                    {"entropy", json_number(cell.entropy)}});
  }
  return list;
}

OrderedJson likeliest_tokens_json(const LoadedTranslator& model,
                                  std::span<const double> probabilities, std::int64_t top) {
  std::vector<std::int32_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](std::int32_t token) {
    return probabilities[static_cast<std::size_t>(token)];
  });
  order.resize(static_cast<std::size_t>(std::min<std::int64_t>(top, std::ssize(order))));
  OrderedJson list = OrderedJson::array();
  for (const std::int32_t token : order) {
    list.push_back(
        token_probability_json(model, token, probabilities[static_cast<std::size_t>(token)]));
  }
  return list;
}

}  // namespace heed
