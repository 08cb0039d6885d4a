/* Rows of matrices: gathered, added up, normalised, mixed. */
#pragma once

#include "tensor/device_library.h"

/* A matrix of any strides. */
struct HeedRows {
  float* data;
  long long row, column; /* strides */
};

struct HeedGather {
  struct HeedRows from, to;
  const int* indices; /* of rows of `from`, one for each row of `to` */
  long long rows, columns;
};

/* Rows of `from` that are added to rows of `to`: row destinations[g] gets rows order[begins[g]],
   order[begins[g] + 1], … up to order[begins[g + 1]], one after another, each times the factor. */
struct HeedGroupedRows {
  struct HeedRows from, to;
  const int* destinations; /* (groups) */
  const int* begins;       /* (groups + 1) */
  const int* order;
  float factor;
  long long groups, columns;
};

struct HeedSoftmaxRows {
  struct HeedRows scores, out; /* backward: the pattern, and the gradient */
  long long rows, columns;
};

/* out (rows, columns) = pattern (rows, shared) · value (shared, columns). */
struct HeedMixRows {
  struct HeedRows pattern, value, out;
  long long rows, shared, columns;
};

/* A vector of any stride. */
struct HeedNumbers {
  float* data; /* null: none */
  long long stride;
};

/* What norms do to rows. */
struct HeedNormRows {
  struct HeedRows x, d_out, out; /* out: or the gradient */
  struct HeedNumbers mean, reciprocal_deviation, gain, bias;
  struct HeedNumbers d_scale;
  int subtracts_mean;
  long long rows, columns;
};
