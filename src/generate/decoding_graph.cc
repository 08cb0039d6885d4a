#include "generate/decoding_graph.h"

#include <utility>

#include "base/error.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "model/rotary.h"

namespace heed {
namespace {

// Rotary angles of so many positions lie ready; as many as attention has in a part of its memory.
constexpr std::int64_t longest_recording = 128;

View<const std::int32_t> as_rows(std::span<const std::int32_t> tokens) {
  return {tokens.data(), {std::ssize(tokens), 1}};
}

// Writes what the blocks read.
void embed(const Transformer& model, const DecodingGraph::Step& step,
           const StackActivations& activations) {
  const std::vector<std::int64_t> positions = step.sequences.row_positions();
  model.forward(as_rows(step.tokens),
                {.sequences = Sequences::from_positions(positions, 1),
                 .length = kernels::decoding_step,
                 .layers = {.begin = 0, .end = 0}},
                activations);
}

}  // namespace

bool DecodingGraph::compute(const Step& step, const StackActivations& activations,
                            View<float> logits) {
  if (!can_have_accelerators || !is_possible_ || model_.device().is_cpu() ||
      model_.editor() != nullptr || turns_by_length(model_.specification().block.attention)) {
    return false;
  }
  std::vector<Place> places;
  for (const Sequence sequence : step.sequences) {
    places.push_back({sequence.cache->memory_number(), sequence.first_position});
  }
  const bool goes_on = places == next_;
  next_ = std::move(places);
  for (Place& place : next_) ++place.length;

  if (!goes_on || read_ != activations.embedding().data() ||
      (recording_ != nullptr && !recording_->can_repeat())) {
    recording_.reset();
  }
  if (!goes_on) return false;
  embed(model_, step, activations);
  if (recording_ != nullptr) {
    step.sequences.advance_caches();
  } else if (!record(step, activations, logits.shape())) {
    return false;
  }
  recording_->repeat();
  kernels::copy(logits_, logits);
  return true;
}

bool DecodingGraph::record(const Step& step, const StackActivations& activations, Shape logits) {
  if (!logits_.present() || logits_.shape() != logits) {
    logits_ = Tensor<float>(logits, model_.device());
  }
  read_ = activations.embedding().data();
  std::int64_t room = longest_recording;
  for (const Sequence sequence : step.sequences) {
    room = std::min(room, sequence.cache->capacity() - sequence.first_position);
  }
  try {
    std::unique_ptr<DeviceRecording> recording = DeviceRecording::begin();
    if (recording == nullptr) return false;
    recording->limit(room);
    model_.forward(as_rows(step.tokens),
                   {.sequences = step.sequences,
                    .length = kernels::decoding_step,
                    .repetitions = room,
                    .stream = activations.embedding()},
                   activations);
    model_.project(activations.final_norm(), logits_, kernels::decoding_step);
    recording->finish();
    recording_ = std::move(recording);
  } catch (const Error& error) {
    for (const Sequence sequence : step.sequences) {
      sequence.cache->truncate(sequence.first_position);
    }
    // What needs the processor in the middle of a step, or more memory than a step by itself, is
    // computed without a recording, and says there what else is wrong.
    if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::out_of_memory) throw;
    is_possible_ = false;
    return false;
  }
  return true;
}

}  // namespace heed
