#include "engine/views/reading_json.h"

#include "base/json.h"

namespace heed {
namespace {

// The words that a model has read of a side.
const WordSet* words_read(const LoadedModel& model, PairSide side) {
  if (model.reading == nullptr) return nullptr;
  const bool is_target = model.is_translator() && side == PairSide::target;
  const std::optional<WordSet>& words =
      is_target ? model.reading->target_words : model.reading->words;
  return words ? &*words : nullptr;
}

}  // namespace

std::optional<UnreadWords> unread_in(const LoadedModel& model, std::span<const std::int32_t> ids,
                                     PairSide side) {
  const WordSet* const words = words_read(model, side);
  const Tokenizer* const tokenizer = model.tokenizer_of(side);
  if (words == nullptr || tokenizer == nullptr) return std::nullopt;
  return find_unread(*words, ids,
                     model.is_translator() ? model.token_bytes(ids, side) : model.text_pieces(ids),
                     *tokenizer);
}

std::optional<UnreadWords> unread_in(const LoadedModel& model, std::string_view text) {
  const PairSide side = model.is_translator() ? PairSide::source : PairSide::target;
  const WordSet* const words = words_read(model, side);
  const Tokenizer* const tokenizer = model.tokenizer_of(side);
  if (words == nullptr || tokenizer == nullptr) return std::nullopt;
  return find_unread(*words, text, tokenizer->encode_with_offsets(text), *tokenizer);
}

UnreadFor unread_for(PairSide side) {
  return side == PairSide::source ? UnreadFor::translation : UnreadFor::prediction;
}

OrderedJson unread_json(const LoadedModel& model, std::span<const std::int32_t> ids,
                        PairSide side) {
  return unread_json(unread_in(model, ids, side), unread_for(side));
}

OrderedJson read_json(const std::shared_ptr<const ReadingRecord>& reading) {
  return reading ? reading_json(*reading) : OrderedJson(nullptr);
}

OrderedJson unread_json(const std::optional<UnreadWords>& unread, UnreadFor purpose) {
  return unread ? unread_json(*unread, purpose) : OrderedJson(nullptr);
}

std::string unread_note(const std::optional<UnreadWords>& unread, UnreadFor purpose) {
  return unread ? unread_note(*unread, purpose) : std::string();
}

}  // namespace heed
