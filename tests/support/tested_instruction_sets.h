// The instruction sets that models are compared with PyTorch on.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/instruction_sets.h"
#include "support/process.h"

namespace heed::testing {

// All that this machine has. Under a sanitizer, where every test takes ten times as long, the best
// and the last: the tests of the kernels run each of them there. One where a device computes.
inline std::vector<std::string> tested_instruction_sets() {
  const std::vector<std::string> sets = kernels::available_instruction_sets();
  if (std::getenv("HEED_TEST_DEVICE") != nullptr) return {sets.front()};
  if (!is_sanitized || sets.size() < 3) return sets;
  return {sets.front(), sets.back()};
}

}  // namespace heed::testing
