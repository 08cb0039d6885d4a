// Where documents begin in a long sequence of tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "train/token_sequence.h"

namespace heed {

// The beginning of each document, at the mark (end_of_text) that ends the one before so that its
// first token is predicted too, and every sequence_length tokens on within it, so that long ones
// are covered. Each begins with at least one target behind it. At least one, if there are two
// tokens.
std::vector<std::int64_t> document_starts(const TokenSequence& tokens, std::int32_t end_of_text,
                                          std::int64_t sequence_length);

}  // namespace heed
