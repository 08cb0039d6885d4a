#include "comm/launch.h"

#include <dlfcn.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "comm/transport_group.h"

namespace heed {
namespace {

constexpr const char* library_name = "heed_mpi.so";

std::optional<int> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits(text);
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

// In the variables of Open MPI's mpirun; of MPICH's; and of Slurm's srun, which sets these for the
// tasks of a step alone.
std::optional<int> launched_number(const std::array<const char*, 3>& variables) {
  for (const char* variable : {variables[0], variables[1]}) {
    if (const auto number = number_in(variable)) return number;
  }
  if (std::getenv("SLURM_STEP_ID") != nullptr && std::getenv("SLURM_PROCID") != nullptr) {
    return number_in(variables[2]);
  }
  return std::nullopt;
}

// The library stays loaded: MPI cannot be started twice.
const HeedTransport& load(const std::filesystem::path& path, int processes) {
  const auto refuse = [processes](const std::string& reason) {
    fail(ErrorCode::unsupported,
         "this process was started as one of {}, but {}: all would do the same work; start heed "
         "without mpirun, or build it where MPI is found",
         processes, reason);
  };
  if (path.empty()) refuse("this heed was built without MPI");
  // Open MPI's own parts look for its functions among all programs' symbols.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) refuse(std::string("MPI cannot be used: ") + dlerror());
  using Function = const HeedTransport* (*)();
  const auto function = reinterpret_cast<Function>(dlsym(library, HEED_TRANSPORT_FUNCTION));
  if (function == nullptr || function()->version != HEED_TRANSPORT_VERSION) {
    refuse("'" + path.string() + "' belongs to another heed");
  }
  return *function();
}

}  // namespace

std::optional<int> launched_processes() {
  return launched_number({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"});
}

std::optional<int> launched_rank() {
  return launched_number({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"});
}

std::filesystem::path mpi_library() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const std::filesystem::path folder = program.parent_path();
  for (const auto& path : {folder / library_name, folder / "../lib/heed" / library_name}) {
    if (std::filesystem::exists(path, error)) return path;
  }
  return {};
}

std::unique_ptr<Group> launched_group(const std::filesystem::path& library) {
  const std::optional<int> processes = launched_processes();
  if (!processes || *processes <= 1) return single_group();
  return transport_group(load(library, *processes));
}

}  // namespace heed
