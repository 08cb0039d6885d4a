// What models have read, and the words of texts that they have not, in JSON documents.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/json_fwd.h"
#include "engine/loaded_model.h"
#include "tokenizer/unread_words.h"

namespace heed {

// The words of a text that a model has not read whole; nothing where that is not known of it.
std::optional<UnreadWords> unread_in(const LoadedModel& model, std::span<const std::int32_t> ids,
                                     PairSide side = PairSide::target);
// Of a text, or of a translator's source, as it was written, with its bytes.
std::optional<UnreadWords> unread_in(const LoadedModel& model, std::string_view text);
// What a text of a side is for.
UnreadFor unread_for(PairSide side);

// reading_json(), or null.
OrderedJson read_json(const std::shared_ptr<const ReadingRecord>& reading);
// unread_json() of a text.
OrderedJson unread_json(const LoadedModel& model, std::span<const std::int32_t> ids,
                        PairSide side = PairSide::target);
// unread_json(), or null.
OrderedJson unread_json(const std::optional<UnreadWords>& unread,
                        UnreadFor purpose = UnreadFor::prediction);
// The sentence about words that were not read; empty where there is none.
std::string unread_note(const std::optional<UnreadWords>& unread,
                        UnreadFor purpose = UnreadFor::prediction);

}  // namespace heed
