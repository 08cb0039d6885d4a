// What models have read, through the public facade.
#include "engine/facade.h"
#include "engine/views/reading_json.h"
#include "heed/reading.h"

namespace heed {
namespace {

std::optional<ReadTexts> texts_of(const ReadingRecord* record) {
  if (record == nullptr) return std::nullopt;
  const auto count = [](const std::optional<WordSet>& words) {
    return words ? std::optional<std::int64_t>(words->size()) : std::nullopt;
  };
  return ReadTexts{.title = record->title,
                   .tokens = record->tokens,
                   .words = count(record->words),
                   .target_words = count(record->target_words)};
}

std::optional<UnreadText> text_of(const std::optional<UnreadWords>& unread, UnreadFor purpose) {
  if (!unread) return std::nullopt;
  UnreadText text{.words = {}, .of = unread->different, .note = unread_note(*unread, purpose)};
  for (const UnreadWord& word : unread->words) {
    text.words.push_back({.text = word.text, .begin = word.begin, .end = word.end});
  }
  return text;
}

}  // namespace

std::optional<ReadTexts> read_texts(const Model& model) {
  return texts_of(ModelAccess::loaded(model).reading.get());
}

std::optional<UnreadText> unread_words(const Model& model, std::string_view text) {
  const LoadedModel& loaded = ModelAccess::loaded(model);
  return text_of(unread_in(loaded, text),
                 unread_for(loaded.is_translator() ? PairSide::source : PairSide::target));
}

}  // namespace heed
