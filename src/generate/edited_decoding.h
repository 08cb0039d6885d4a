// One source, encoded and decoded as an editor changes both stacks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/encoder_decoder.h"

namespace heed {

// What cross-attention reads is projected anew at every step, so that edits of its keys and values
// apply as in a pass over both texts.
class EditedDecoding {
 public:
  EditedDecoding(const EncoderDecoder& model, std::span<const std::int32_t> source, Editor& editor);

  // One step of R hypotheses of the source, as EncoderDecoder::decode: their last tokens (R), a
  // cache of as many sequences, logits (R, V) of the next tokens.
  void decode(std::span<const std::int32_t> tokens, KeyValueCache& cache,
              GptActivations& activations, View<float> logits) const;

 private:
  const EncoderDecoder& model_;
  Editor& editor_;
  std::vector<std::int64_t> row_starts_;
  Tensor<float> rows_;  // (S, C), the encoder's end
};

}  // namespace heed
