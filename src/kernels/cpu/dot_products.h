// Dot products of some rows of x with the rows of a weight.
#pragma once

#include <cstdint>

namespace heed::kernels {

struct DotProducts {
  const float* x;  // (rows, inputs), rows x_row apart
  std::int64_t x_row;
  bool x_in_blocks = false;  // as x_blocks writes it
  const float* weight;       // (outputs, inputs), rows weight_row apart
  std::int64_t weight_row;
  std::int64_t inputs;
  const float* bias;  // null, or (outputs)
  std::int64_t outputs;
  float* out;  // (rows, outputs)
};

// Up to this many rows, those of a short prompt or of a batch of sequences that decode, wait for
// weights from memory. Each is read once: by rows that take one pass, or in pieces that stay in the
// caches for all passes.
inline constexpr std::int64_t rows_at_memory_speed = 32;

// More rows are multiplied by at least as many weights in a call.
inline constexpr std::int64_t weights_together = 64;
// The inputs whose products are summed in vectors.
inline constexpr std::int64_t inputs_together = 768;

// (rows, inputs) as blocks of inputs_together inputs, the last one of the rest, (rows, inputs of
// the block) each. Rows longer than a block lie so far apart that they fall on the same lines of
// the first-level cache; those of a block are dense.
void x_blocks(const float* x, std::int64_t rows, std::int64_t inputs, float* blocks);

// out = x·Wᵀ + bias at the outputs [first, last). Every element is summed in the same order for any
// number of rows, so that decoding a sequence gives the same result alone and in a batch.
void dot_products(std::int64_t rows, const DotProducts& all, std::int64_t first, std::int64_t last);

}  // namespace heed::kernels
