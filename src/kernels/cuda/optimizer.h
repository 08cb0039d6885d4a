/* Operations over whole arenas. */
#pragma once

#include "tensor/device_library.h"

struct HeedAdamW {
  long long count;
  float* parameters;
  const float* gradients;
  float* first_moment;
  float* second_moment;
  float learning_rate, beta1, beta2, epsilon, weight_decay, gradient_scale;
  float unbias1, unbias2; /* 1 / (1 − beta^step) */
};

struct HeedSquaredNorm {
  long long count;
  const float* x;
  double* sums; /* (parts) */
  int parts;
  double* result;
};

struct HeedAllFinite {
  long long count;
  const float* x;
  unsigned* found; /* becomes 1 where a number is not finite */
};
