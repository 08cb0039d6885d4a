// Steps of decoding on an accelerator as one launch: all of a step but the embedding of its tokens
// is recorded once, and repeated as long as the same sequences go on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/activations.h"
#include "model/sequences.h"
#include "model/transformer.h"
#include "tensor/device_recording.h"

namespace heed {

class DecodingGraph {
 public:
  // Borrows the model.
  explicit DecodingGraph(const Transformer& model) : model_(model) {}

  // A token for each of the sequences, which have caches.
  struct Step {
    std::span<const std::int32_t> tokens;
    const Sequences& sequences;
  };

  // Computes the step and the logits (R, V) of the next tokens, with the same bits as a pass that
  // is not recorded. False, without effect, where that pass must be computed: on the processor, in
  // a model with an editor or with frequencies that depend on the length of the text, and in the
  // first step of its sequences.
  bool compute(const Step& step, const StackActivations& activations, View<float> logits);

 private:
  // A sequence by the memory of its cache, and its length.
  struct Place {
    std::uint64_t memory;
    std::int64_t length;
    bool operator==(const Place&) const = default;
  };

  bool record(const Step& step, const StackActivations& activations, Shape logits);

  const Transformer& model_;
  std::vector<Place> next_;      // where the sequences go on, after the step before
  const float* read_ = nullptr;  // what the recording reads
  std::unique_ptr<DeviceRecording> recording_;
  Tensor<float> logits_;  // (R, V), on the device
  bool is_possible_ = true;
};

}  // namespace heed
