// Measured peak performance of the machine: loops that do nothing else.
#pragma once

#include <cstdint>
#include <vector>

namespace heed::kernels {

// The measured loops, each in all threads.
enum class PeakLoop {
  multiply_add_f32,   // multiply-adds of f32 registers, with the instruction set in use
  dot_product_bf16,   // AVX-512 BF16, BFDOT: dot products of pairs in registers
  tile_product_bf16,  // AMX: products of tiles in registers
  read,               // reading memory, each thread its own part of half a GiB
};

// Whether the instruction set in use (instruction_sets.h) has the loop.
bool has_peak_loop(PeakLoop loop);

struct PeakMeasurement {
  double work = 0;              // of one run: floating-point operations, or bytes read
  std::vector<double> seconds;  // of each run

  double best_rate() const;  // work per second, of the fastest run
};

// Throws Error{unsupported} if has_peak_loop() is false, Error{invalid_argument} for no runs or no
// length. A run of an arithmetic loop takes a few milliseconds, a run of reading some tens, and
// `length` times as long on request: the loop is repeated as often for each thread. Threads take
// repetitions of arithmetic from a shared counter; each reads its own part of the memory.
PeakMeasurement measure_peak(PeakLoop loop, int runs, std::int64_t length = 1);

// Floating-point operations a second of the best of ten runs of multiply_add_f32.
double measure_peak_flops();

}  // namespace heed::kernels
