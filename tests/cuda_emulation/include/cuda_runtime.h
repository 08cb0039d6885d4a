// The part of CUDA's runtime that the project uses, under NVIDIA's names and signatures: for GCC
// and Clang as plain C++, where blocks run on the host (HEED_CUDA_EMULATION), and for Clang's CUDA
// mode, which only checks that device code compiles (see ptx.sh).
//
// Environment of the emulation:
//   HEED_EMULATED_DEVICES=N              devices [1]
//   HEED_EMULATED_MEMORY_MIB=N           memory of each [4096]
//   HEED_EMULATED_COMPUTE_CAPABILITY=NN  ten times the compute capability [80]
//   HEED_EMULATED_PROTECTION=0           lets the host access memory of devices
//   HEED_EMULATED_ORDER=reverse|shuffle  order of blocks and threads, to find missing barriers
//   HEED_EMULATED_LAZY=1                 does work when a call waits, to find missing waits
#pragma once

#if defined(__CUDA__)
#include "device.h"  // clang/device.h
#else
#define HEED_CUDA_EMULATION 1
#include "emulation/keywords.h"
#include "emulation/threads.h"
#include "emulation/vector_types.h"
//
#include "emulation/device_functions.h"
#endif

#include "emulation/runtime_api.h"
