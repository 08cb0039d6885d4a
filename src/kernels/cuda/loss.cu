#include "kernels/cuda/loss.h"

#include "kernels/cuda/row_threads.h"

namespace heed_cuda {
namespace {

constexpr float infinity = __builtin_huge_valf();
constexpr int ignored_target = -1;
constexpr int quads_at_once = 4;

// body(values, size) on all numbers of a row, four or one at once, by the threads of the row.
// Rows of odd lengths begin anywhere: what is before and after aligned quads comes one by one.
// Several quads are loaded before the first of them is used. A body that returns true has changed
// the values, which are then stored.
template <int threads, class Body>
HEED_DEVICE void over_row(float* row, long long size, const Body& body) {
  const int thread = RowThreads<threads>::thread();
  const auto misaligned = static_cast<int>(reinterpret_cast<size_t>(row) / sizeof(float) % 4);
  const long long before = misaligned == 0 ? 0 : 4 - misaligned;
  const long long head = before < size ? before : size;
  const long long quads = (size - head) / 4;
  const long long tail = head + 4 * quads;
  float* const middle = row + head;
  for (long long first = thread; first < quads; first += quads_at_once * threads) {
    float values[quads_at_once][4];
    for (int n = 0; n < quads_at_once; ++n) {
      const long long quad = first + n * threads;
      if (quad < quads) load_quad(middle + 4 * quad, values[n]);
    }
    for (int n = 0; n < quads_at_once; ++n) {
      const long long quad = first + n * threads;
      if (quad >= quads) continue;
      if (body(values[n], 4)) store_quad(values[n], middle + 4 * quad);
    }
  }
  if (thread >= head + (size - tail)) return;
  float* const at = row + (thread < head ? thread : tail + thread - head);
  float values[4] = {*at};
  if (body(values, 1)) *at = values[0];
}

// A running maximum and Σ exp(x − maximum) (Milakov, Gimelshein 2018).
struct RunningSum {
  float maximum = -infinity;
  float sum = 0;

  HEED_DEVICE void add(const float (&values)[4], int size) {
    float most = values[0];
    for (int j = 1; j < 4; ++j) {
      if (j < size) most = fmaxf(most, values[j]);
    }
    if (most > maximum) {
      sum *= expf(maximum - most);  // 0 at first
      maximum = most;
    }
    // where there is nothing but −∞ yet, its exponentials are 0
    const float shift = maximum == -infinity ? 0.0F : maximum;
    for (int j = 0; j < 4; ++j) {
      if (j < size) sum += expf(values[j] - shift);
    }
  }
};

// log(exp(a) + exp(b)), where either may be −∞; not finite where one of them is not.
HEED_DEVICE float log_add_exp(float a, float b) {
  if (a == -infinity) return b;
  return fmaxf(a, b) + log1pf(expf(-fabsf(a - b)));
}

template <int threads>
HEED_DEVICE void differentiate_row(const HeedCrossEntropy& operands, float* row, int target,
                                   float normaliser) {
  if (target == ignored_target) {
    over_row<threads>(row, operands.words, [](float(&values)[4], int) {
      for (int j = 0; j < 4; ++j) values[j] = 0;
      return true;
    });
    return;
  }
  const float scale = operands.scale, spread = operands.spread;
  over_row<threads>(row, operands.words, [&](float(&values)[4], int size) {
    for (int j = 0; j < 4; ++j) {
      if (j < size) values[j] = fmaf(expf(values[j] - normaliser), scale, -spread);
    }
    return true;
  });
  // Then the target is taken out of its gradient.
  const long long first = operands.first_word;
  float* const at =
      target >= first && target - first < operands.words ? row + (target - first) : nullptr;
  if (at == nullptr) return;
  if constexpr (threads == warp_lanes) {
    __syncwarp();
  } else {
    __syncthreads();
  }
  if (RowThreads<threads>::thread() == 0) *at -= scale * (1.0F - operands.smoothing_rate);
}

// Bytes are the limit. The logits of a row are read once for the sums, and once more for gradients,
// when those of so few rows at a time are still in the second-level cache.
template <int threads>
__global__ void __launch_bounds__(RowThreads<threads>::block)
    cross_entropy(const HeedCrossEntropy operands) {
  using Team = RowThreads<threads>;
  const long long n = Team::row();
  if (n >= operands.rows) return;
  float* const row = operands.logits + n * operands.words;
  const int target = operands.targets[n];
  if (operands.given_normalisers != nullptr) {
    differentiate_row<threads>(operands, row, target, operands.given_normalisers[n]);
    return;
  }
  const bool writes = Team::thread() == 0;
  const bool of_pieces = operands.normalisers != nullptr;
  float normaliser = 0;
  if (of_pieces || target != ignored_target) {
    const bool sums_logits =
        operands.logit_sums != nullptr ||
        (operands.smoothed_losses != nullptr && operands.smoothing_rate != 0.0F);
    RunningSum running;
    float logit_sum = 0;
    over_row<threads>(row, operands.words, [&](float(&values)[4], int size) {
      running.add(values, size);
      if (sums_logits) {
        for (int j = 0; j < 4; ++j) logit_sum += j < size ? values[j] : 0.0F;
      }
      return false;
    });
    const float maximum = Team::max(running.maximum);
    // A thread without numbers, or with −∞ alone, has a sum of 0, or NaN, which stays.
    const float own = running.maximum == maximum ? 1.0F : expf(running.maximum - maximum);
    normaliser = maximum + logf(Team::sum(running.sum * own));
    if (sums_logits) logit_sum = Team::sum(logit_sum);
    if (of_pieces && writes) {
      operands.normalisers[n] = log_add_exp(operands.normalisers[n], normaliser);
      const long long at = target - operands.first_word;
      if (at >= 0 && at < operands.words) operands.target_logits[n] = row[at];
      if (operands.logit_sums != nullptr) operands.logit_sums[n] += logit_sum;
    }
    if (!of_pieces && writes) {
      const float loss = normaliser - row[target], rate = operands.smoothing_rate;
      operands.losses[n] = loss;
      if (operands.smoothed_losses != nullptr) {
        const float mean = normaliser - logit_sum / static_cast<float>(operands.words);
        operands.smoothed_losses[n] = rate == 0.0F ? loss : (1.0F - rate) * loss + rate * mean;
      }
    }
  } else if (writes) {
    operands.losses[n] = 0;
    if (operands.smoothed_losses != nullptr) operands.smoothed_losses[n] = 0;
  }
  if (!operands.differentiates) return;
  if constexpr (threads == warp_lanes) {
    __syncwarp();  // the target's logit has been read
  } else {
    __syncthreads();
  }
  differentiate_row<threads>(operands, row, target, normaliser);
}

__global__ void __launch_bounds__(element_threads) piece_losses(const HeedPieceLosses operands) {
  const float rate = operands.rate;
  for (long long n = first_item(); n < operands.rows; n += item_step()) {
    float loss = 0, smoothed = 0;
    if (operands.targets[n] != ignored_target) {
      const float normaliser = operands.normalisers[n * operands.normaliser_stride];
      smoothed = loss = normaliser - operands.target_logits[n * operands.target_logit_stride];
      if (rate > 0.0F) {
        const float mean =
            normaliser - operands.logit_sums[n * operands.logit_sum_stride] / operands.vocabulary;
        smoothed = __fadd_rn(__fmul_rn(1.0F - rate, loss), __fmul_rn(rate, mean));
      }
    }
    operands.losses[n * operands.loss_stride] = loss;
    if (operands.smoothed_losses != nullptr) {
      operands.smoothed_losses[n * operands.smoothed_loss_stride] = smoothed;
    }
  }
}

template <int threads>
HeedCudaResult launch_rows(const HeedCrossEntropy& operands) {
  return launch(cross_entropy<threads>, RowThreads<threads>::grid(operands.rows),
                RowThreads<threads>::block, 0, operands);
}

}  // namespace
}  // namespace heed_cuda

extern "C" {

HeedCudaResult heed_cuda_cross_entropy(const HeedCrossEntropy* operands) {
  if (operands->words <= 1024) return heed_cuda::launch_rows<heed_cuda::warp_lanes>(*operands);
  if (operands->words <= 8192) return heed_cuda::launch_rows<256>(*operands);
  return heed_cuda::launch_rows<1024>(*operands);
}

HeedCudaResult heed_cuda_cross_entropy_piece_losses(const HeedPieceLosses* operands) {
  using namespace heed_cuda;
  return launch(piece_losses, blocks_for(operands->rows, element_threads), element_threads, 0,
                *operands);
}

}  // extern "C"
