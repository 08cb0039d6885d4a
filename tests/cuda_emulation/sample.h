// Host entry points of sample.cu: each returns null, or an error's text.
#pragma once

#include <cstddef>

struct SumOperands {
  const float* in;  // (rows, columns)
  float* out;       // (rows)
  int rows, columns;
};

extern "C" {
const char* heed_sample_sum_rows(const SumOperands* operands);
const char* heed_sample_multiply(const float* a, const float* b, float* out);
// out has n + 1 elements and counts 3; the last of out and all counts are added to.
const char* heed_sample_functions(const float* in, float* out, unsigned* counts, int n);
}
