#include "kernels/attention_sequences.h"
#include "kernels/backends.h"

#include <algorithm>

#include "base/threads.h"

namespace heed::kernels {
namespace {

void attend(const SequenceAttention& sequence) {
  if (!sequence.is_quantised()) {
    return attention_forward(sequence.input, sequence.out, sequence.log_sum_exp);
  }
  attention_forward(sequence.to_cache(), sequence.out, sequence.log_sum_exp);
}

void attend_backward(const SequenceAttentionBackward& sequence) {
  attention_backward(sequence.input, sequence.out, sequence.log_sum_exp, sequence.d_out,
                     sequence.gradients);
}

}  // namespace

void cpu::attention_forward(std::span<const SequenceAttention> sequences) {
  parallel_items(std::ssize(sequences),
                 [&](std::int64_t index) { attend(sequences[static_cast<std::size_t>(index)]); });
}

void cpu::attention_backward(std::span<const SequenceAttentionBackward> sequences) {
  const bool share_a_table = std::ranges::any_of(
      sequences, [](const auto& sequence) { return sequence.gradients.position_bias.present(); });
  if (share_a_table) {
    for (const SequenceAttentionBackward& sequence : sequences) attend_backward(sequence);
    return;
  }
  parallel_items(std::ssize(sequences), [&](std::int64_t index) {
    attend_backward(sequences[static_cast<std::size_t>(index)]);
  });
}

}  // namespace heed::kernels
