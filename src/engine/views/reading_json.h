// What models have read, and the words of texts that they have not, in JSON documents.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/json_fwd.h"
#include "engine/loaded_model.h"
#include "engine/loaded_translator.h"
#include "tokenizer/unread_words.h"

namespace heed {

// The words of a text that a model has not read whole; nothing where that is not known of it.
std::optional<UnreadWords> unread_in(const LoadedModel& model, std::span<const std::int32_t> ids);
std::optional<UnreadWords> unread_in(const LoadedTranslator& model, PairSide side,
                                     std::span<const std::int32_t> ids);
// Of a text as it was written, with its bytes.
std::optional<UnreadWords> unread_in(const LoadedModel& model, std::string_view text);
std::optional<UnreadWords> unread_in(const LoadedTranslator& translator, std::string_view source);

// reading_json(), or null.
OrderedJson read_json(const std::shared_ptr<const ReadingRecord>& reading);
// unread_json(), or null.
OrderedJson unread_json(const std::optional<UnreadWords>& unread,
                        UnreadFor purpose = UnreadFor::prediction);
// The sentence about words that were not read; empty where there is none.
std::string unread_note(const std::optional<UnreadWords>& unread,
                        UnreadFor purpose = UnreadFor::prediction);

}  // namespace heed
