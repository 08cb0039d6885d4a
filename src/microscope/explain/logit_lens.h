// The logit lens: the prediction from each layer's residual stream, of a text or, in a decoder that
// reads a source too, of its target.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "microscope/traces/recorded_pass.h"
#include "model/transformer.h"

namespace heed {

struct LensToken {
  std::int32_t token = 0;
  double probability = 0;
};

// The prediction of one layer at one position.
struct LensCell {
  std::vector<LensToken> top;  // most likely first
  double entropy = 0;          // nats
  double divergence = 0;       // KL(last layer ‖ this one), nats
  // Of the followed token, if there is one.
  double logit = 0;
  double probability = 0;
  std::int64_t rank = 0;  // 0: the most likely
};

enum class LensNorm {
  final_norm,  // apply the final norm, with statistics of each layer's stream
  none,        // apply the unembedding to the stream directly
};

struct LensOptions {
  std::int64_t top = 5;
  LensNorm norm = LensNorm::final_norm;
  // The token to follow at each position (T); one entry for all positions; empty for none.
  std::vector<std::int32_t> followed{};
  // The positions to evaluate, ascending; empty for all. `followed` then has one token for each of
  // them.
  std::vector<std::int64_t> positions{};
};

// points x positions
struct LogitLens {
  std::vector<Point> points;  // stream_points()
  std::int64_t positions = 0;
  std::vector<LensCell> cells;

  const LensCell& at(std::int64_t point, std::int64_t position) const {
    return cells[static_cast<std::size_t>(point * positions + position)];
  }
};

// softmax(W_U · norm(resid_l)) for each layer's stream (nostalgebraist, Interpreting GPT: the logit
// lens, 2020; TransformerLens: accumulated_resid with apply_ln). The last row is the model's own
// prediction. Keeps (L + 1)·T·C numbers; logits are computed in chunks of positions. Throws what
// trace() throws, and Error{invalid_argument} for a followed token outside the vocabulary or a
// number of them that is neither 0, 1 nor T.
LogitLens look_through_layers(const Transformer& model, std::span<const std::int32_t> tokens,
                              const LensOptions& options = {});

// The same for a recorded pass with its interventions; of two texts, of the decoder.
LogitLens look_through_layers(const RecordedPass& pass, const LensOptions& options = {});

}  // namespace heed
