// Where documents begin in a long sequence of tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "train/token_sequence.h"

namespace heed {

// The beginning of each document, at the end-of-text token that ends the previous one so that its
// first token is predicted too, and every sequence_length tokens within it, so that long documents
// are covered. Each start is followed by at least one target. At least one start, given two tokens.
std::vector<std::int64_t> document_starts(const TokenSequence& tokens, std::int32_t end_of_text,
                                          std::int64_t sequence_length);

}  // namespace heed
