// A sentence of a run's own text.
#pragma once

#include <cstdint>
#include <string>

#include "tokenizer/tokenizer.h"
#include "train/token_data.h"

namespace heed {

// A line of the texts, cut between words to at most `most_tokens` tokens: what every model of the
// run can be tried on, because the run's tokenizer encodes it. Empty if there is none.
std::string sample_sentence(const Texts& texts, const Tokenizer& tokenizer,
                            std::int64_t most_tokens);

}  // namespace heed
