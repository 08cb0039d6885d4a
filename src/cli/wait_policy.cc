#include "cli/wait_policy.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace heed::cli {

void shorten_spins(char** argv) {
  constexpr const char* spin_count = "GOMP_SPINCOUNT";
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv(spin_count) != nullptr) return;
  // By its own path, not by /proc/self/exe, so that the process keeps its name.
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error || ::setenv(spin_count, "10000", 1) != 0) return;
  ::execv(program.c_str(), argv);  // returns only where it fails: then all stays as it was
}

}  // namespace heed::cli
