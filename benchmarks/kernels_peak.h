// What the machine can do at best: multiply-adds on registers alone.
#pragma once

namespace heed::kernels {

// Operations a second of all threads together, with the instruction set in use, in the best of
// several short runs.
double measure_peak();

}  // namespace heed::kernels
