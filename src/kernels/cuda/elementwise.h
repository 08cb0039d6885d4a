/* Activations, soft caps, dropout and sums, element by element. */
#pragma once

#include "tensor/device_library.h"

/* In the order of kernels::Activation. */
enum HeedActivation {
  HEED_GELU_TANH,
  HEED_GELU_ERF,
  HEED_RELU,
  HEED_SILU,
  HEED_RELU2,
};

/* Contiguous operands; those that an operation does not have are null. */
struct HeedActivationOperands {
  int activation;
  long long count;
  const float* x;  /* or the gate */
  const float* up; /* null: not gated */
  const float* d_out;
  float* out; /* or d_x, or d_gate */
  float* d_up;
};

struct HeedSoftCap {
  float cap;
  long long count;
  const float* x; /* backward: what forward gave */
  const float* d_out;
  float* out; /* or d_x */
};

struct HeedAdd {
  long long count;
  const float* x;
  const float* y;
  float* out;
};

struct HeedDropout {
  long long rows, columns;
  const float* x;
  float* out;
  unsigned long long key;
  unsigned first_column;
  unsigned threshold;
  float factor; /* of what is kept */
};
