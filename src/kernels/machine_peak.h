// What the machine could do at best, measured now: plain loops that do nothing else.
#pragma once

namespace heed::kernels {

// Floating-point operations a second that all threads reach together in f32 multiply-adds of
// registers, with the instruction set in use: the best of a few short runs (about 30 ms in all).
double measure_peak_flops();

}  // namespace heed::kernels
