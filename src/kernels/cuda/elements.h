/* What moves, fills, adds up and compares numbers. */
#pragma once

#include "tensor/device_library.h"

/* Views of one shape, folded: of one rank of at least 1, without dimensions of one element where
   others are, and with as few dimensions as their strides allow, the last one the closest in the
   memory that is written. Those that an operation does not have are absent. */
struct HeedElementOperands {
  struct HeedView x;
  struct HeedView y;
  struct HeedView out;
  float number;    /* that fills, or a factor */
  unsigned* found; /* comparison: becomes 1 where bits differ */
};

/* The same, of bytes. */
struct HeedByteCopy {
  struct HeedView from;
  struct HeedView to;
};
