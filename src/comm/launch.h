// The group that this process was started in.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "comm/group.h"

namespace heed {

// The number of processes that mpirun or srun started, by the environment that they set; nothing
// where neither started this one.
std::optional<int> launched_processes();

// Which of them this process is, from 0; nothing likewise.
std::optional<int> launched_rank();

// Beside this program, or in ../lib/heed, where it is installed; empty: in neither.
std::filesystem::path mpi_library();

// The group of a process that mpirun or srun started, over `library`, else a group of one. Throws
// Error{unsupported} where several were started and the library is missing or cannot be loaded:
// they would all do the same work.
std::unique_ptr<Group> launched_group(const std::filesystem::path& library = mpi_library());

}  // namespace heed
