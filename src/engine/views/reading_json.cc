#include "engine/views/reading_json.h"

#include "base/json.h"

namespace heed {
namespace {

const WordSet* words_of_side(const ReadingRecord* reading, PairSide side) {
  if (reading == nullptr) return nullptr;
  const std::optional<WordSet>& words =
      side == PairSide::source ? reading->words : reading->target_words;
  return words ? &*words : nullptr;
}

const WordSet* words_of_text(const ReadingRecord* reading) {
  return words_of_side(reading, PairSide::source);
}

std::optional<UnreadWords> unread_in_written(const WordSet* words, const Tokenizer* tokenizer,
                                             std::string_view text) {
  if (words == nullptr || tokenizer == nullptr) return std::nullopt;
  return find_unread(*words, text, tokenizer->encode_with_offsets(text), *tokenizer);
}

}  // namespace

std::optional<UnreadWords> unread_in(const LoadedModel& model, std::span<const std::int32_t> ids) {
  const WordSet* const words = words_of_text(model.reading.get());
  if (words == nullptr || model.tokenizer == nullptr) return std::nullopt;
  return find_unread(*words, ids, model.text_pieces(ids), *model.tokenizer);
}

std::optional<UnreadWords> unread_in(const LoadedTranslator& model, PairSide side,
                                     std::span<const std::int32_t> ids) {
  const WordSet* const words = words_of_side(model.reading.get(), side);
  if (words == nullptr || model.tokenizer(side) == nullptr) return std::nullopt;
  return find_unread(*words, ids, model.token_bytes(side, ids), *model.tokenizer(side));
}

std::optional<UnreadWords> unread_in(const LoadedModel& model, std::string_view text) {
  return unread_in_written(words_of_text(model.reading.get()), model.tokenizer.get(), text);
}

std::optional<UnreadWords> unread_in(const LoadedTranslator& translator, std::string_view source) {
  return unread_in_written(words_of_side(translator.reading.get(), PairSide::source),
                           translator.tokenizers.source.get(), source);
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
