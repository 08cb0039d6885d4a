// CUDA's keywords as plain C++.
#pragma once

#define __global__
#define __device__
#define __host__
#define __constant__
#define __noinline__ __attribute__((noinline))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__

// The blocks of a launch run one after another on one thread of the host, so that a variable of a
// block is one of that thread. It keeps its value from block to block.
#define __shared__ static
