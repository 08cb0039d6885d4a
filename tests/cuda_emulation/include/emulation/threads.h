// What a kernel's thread sees of its launch, and how threads of a block wait for one another.
// A thread is a fiber: it runs until it waits, then the next one of its block runs.
#pragma once

#include <cstddef>

#include "emulation/vector_types.h"

// Initial-exec: read by every line of a kernel, and 48 bytes fit a loaded library's static TLS.
#define HEED_THREAD_STATE extern __attribute__((tls_model("initial-exec"))) constinit thread_local
HEED_THREAD_STATE uint3 threadIdx;
HEED_THREAD_STATE uint3 blockIdx;
HEED_THREAD_STATE dim3 blockDim;
HEED_THREAD_STATE dim3 gridDim;
#undef HEED_THREAD_STATE

inline constexpr int warpSize = 32;

void __syncthreads();
int __syncthreads_count(int predicate);
int __syncthreads_and(int predicate);
int __syncthreads_or(int predicate);

namespace heed::emulation {

// The block's memory of cudaLaunchConfig_t::dynamicSmemBytes bytes, aligned to 1024; 0xFF in each
// byte when a block begins.
void* dynamic_shared();

// Of all threads of the block, in order of x, y, z; the warp is this / 32.
unsigned thread_in_block();
inline unsigned lane() { return thread_in_block() % 32; }

// What a lane brings to an operation of its warp: null in lanes that take no part in it.
using WarpOperands = void* [32];
using WarpOperation = void (*)(const WarpOperands& operands);

// Waits for the lanes of `mask` that have not exited, of which the caller must be one; the last one
// to arrive runs the operation once for all of them.
void warp_operation(unsigned mask, WarpOperation operation, void* operand);

// Stops the program: a kernel does what CUDA does not define.
[[noreturn]] void undefined_behaviour(const char* what);

}  // namespace heed::emulation
