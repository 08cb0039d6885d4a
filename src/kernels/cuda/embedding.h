/* Rows of a token table, plus rows of a position table. */
#pragma once

#include "tensor/device_library.h"

struct HeedEmbedding {
  long long rows, channels;
  const int* tokens;    /* (rows) */
  const int* positions; /* (rows) */
  const float* token_table;
  const float* position_table; /* null: none */
  float token_scale;
  float* out;
};
