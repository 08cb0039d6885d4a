// Instructions of AArch64 that Highway's target NEON does not include: code between
// HWY_PUSH_ATTRIBUTES(one of these) and HWY_POP_ATTRIBUTES may use them, and runs where
// instruction_sets.cc finds them.
#pragma once

#include <hwy/highway.h>

// GCC declares their intrinsics wherever such attributes are in force. Clang 14 does not.
#if HWY_ARCH_ARM_A64 && HWY_COMPILER_GCC_ACTUAL
#define HEED_NEON_EXTENSIONS 1
#define HEED_NEON_DOT "arch=armv8.2-a+dotprod"
#define HEED_NEON_BF16 "arch=armv8.2-a+bf16"
#include <arm_neon.h>
#else
#define HEED_NEON_EXTENSIONS 0
#endif
