/* Rotary position embeddings, in place. */
#pragma once

#include "tensor/device_library.h"

struct HeedRotary {
  long long rows, heads, pairs;
  float* x;
  long long row_stride, head_stride;
  const float* cosine;   /* (rows, pairs), of each repetition */
  const float* sine;     /* the same */
  const int* repetition; /* null: of none */
  int neighbours;        /* pairs of 2i and 2i + 1, instead of i and i + pairs */
  float direction;       /* −1: the opposite angles */
};
