#include "cli/wait_policy.h"

#include <unistd.h>

#include <cstdlib>

namespace heed::cli {

void shorten_spins(char** argv) {
  constexpr const char* spin_count = "GOMP_SPINCOUNT";
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv(spin_count) != nullptr) return;
  if (::setenv(spin_count, "10000", 1) != 0) return;
  ::execv("/proc/self/exe", argv);  // returns only where it fails: then all stays as it was
}

}  // namespace heed::cli
