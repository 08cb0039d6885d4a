// Tokens in JSON documents: of the command line, the server and the page.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "engine/loaded_model.h"
#include "microscope/attention/text_words.h"

namespace heed {

// The text of whole characters; bytes that are none by their numbers: "‹E6 B0›".
std::string named_bytes(std::string_view bytes);

// {"id", "text"}; where the token's bytes are not whole characters, "text" is named_bytes()
// and "bytes" lists all of the token's.
OrderedJson token_json(std::int32_t id, const std::string& bytes);
OrderedJson token_json(const LoadedModel& model, std::int32_t id, PairSide side = PairSide::target);
OrderedJson tokens_json(const LoadedModel& model, std::span<const std::int32_t> ids,
                        PairSide side = PairSide::target);

// The words of a text and the tokens between them, as units_of(); without a tokenizer, whose tokens
// have no text, each token by itself.
std::vector<TextWord> text_units(const LoadedModel& model, std::span<const std::int32_t> ids,
                                 PairSide side = PairSide::target);
// The words alone, as words_of(). In both, special tokens of an encoder or a translator are by
// themselves.
std::vector<TextWord> text_words(const LoadedModel& model, std::span<const std::int32_t> ids);

// [{"text", "begin", "end"}]
OrderedJson units_json(const std::vector<TextWord>& units);

// The "text" of a token.
std::string token_text(const LoadedModel& model, std::int32_t id, PairSide side = PairSide::target);

}  // namespace heed
