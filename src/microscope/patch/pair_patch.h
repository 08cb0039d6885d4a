// Patching between two pairs of texts: which vectors of one source, put into the pass of another,
// bring back its translation.
#pragma once

#include <cstdint>
#include <vector>

#include "base/progress.h"
#include "microscope/traces/recorded_pass.h"

namespace heed {

// What each cell of a patch replaces by its value in the clean pass, in every layer.
enum class PairPatchPlace {
  encoder_stream,  // encoder.l.hook_resid_pre, a position of the source at a time
  decoder_stream,  // decoder.l.hook_resid_pre, a position of the target
  encoder_heads,   // encoder.l.attn.hook_z, a head at a time
  decoder_heads,   // decoder.l.attn.hook_z
  cross_heads,     // decoder.l.cross_attn.hook_z
};

struct PairPatchRequest {
  PairPatchPlace place = PairPatchPlace::encoder_stream;
  std::int64_t position = -1;  // of the target, whose next token is measured; −1: the last
  std::int32_t token = 0;      // its log probability is measured
};

struct PairPatch {
  double clean = 0;      // log probability in the clean pass
  double corrupted = 0;  // and in the corrupted one
  Tensor<float> cells;   // (layers, positions or heads): the same in a corrupted, patched pass
};

// The pairs have sources and targets of one length. Takes a pass for each cell. Throws
// Error{invalid_argument} for other lengths, positions and tokens, and Error{interrupted} when
// stopped.
PairPatch patch_pair(const RecordedPass& clean, const RecordedPass& corrupted,
                     const PairPatchRequest& request, const ProgressCallback& progress = {},
                     StopFlag stop = nullptr);

}  // namespace heed
