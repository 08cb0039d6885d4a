// The logit lens on the decoder of an encoder-decoder: the next token as each layer's stream would
// predict it.
#pragma once

#include <cstdint>
#include <vector>

#include "microscope/explain/logit_lens.h"
#include "microscope/traces/pair_pass.h"

namespace heed {

struct PairLensRow {
  Point point;                 // of the stream
  std::vector<LensToken> top;  // most likely first
  double entropy = 0;          // nats
  double probability = 0;      // of the followed token
};

// The stream before every block and after the last, through the decoder's final norm (where it has
// one) and its unembedding, at one position of the target. The last row is the model's own
// prediction. `followed` −1: no token. Throws Error{invalid_argument} for a position outside the
// target and a token outside the vocabulary.
struct PairLensOptions {
  std::int64_t position = 0;
  std::int64_t top = 5;
  std::int32_t followed = -1;
};
std::vector<PairLensRow> look_through_decoder(const PairPass& pass, const PairLensOptions& options);

}  // namespace heed
