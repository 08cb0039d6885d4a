/* Layer normalisation and root mean square normalisation, whose rows have no mean. */
#pragma once

#include "tensor/device_library.h"

/* Row i = n · heads + h of a matrix begins at n · row + h · head. */
struct HeedHeadStrides {
  long long row, head;
};

struct HeedNormForward {
  long long rows, heads, channels;
  const float* x;
  float* out;
  struct HeedHeadStrides x_strides, out_strides;
  const float* gain;
  const float* bias; /* null: none */
  float epsilon;
  float* mean; /* null: of root mean squares */
  float* reciprocal_deviation;
};

struct HeedNormBackward {
  long long rows, heads, channels;
  const float* x;
  const float* d_out;
  float* d_x;
  struct HeedHeadStrides x_strides, d_out_strides, d_x_strides;
  int accumulates; /* into d_x */
  const float* gain;
  const float* mean; /* null: of root mean squares */
  const float* reciprocal_deviation;
  float* d_gain; /* null: not wanted */
  float* d_bias; /* null: not wanted */
  /* (parts, channels), or (parts, 2 · channels) with d_bias: part p has the sums of rows p,
     p + parts, … */
  float* partial_sums;
  long long parts;
};
