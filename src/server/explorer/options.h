// Options of `heed explore` in addition to those of the server.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace heed::server {

struct ExplorerOptions {
  std::int64_t trace_budget = std::int64_t{2} << 30;  // bytes that all traces may take together
  std::vector<std::filesystem::path> runs;            // directories of training runs
  std::filesystem::path corpus;                       // text that neurons' contexts come from
};

}  // namespace heed::server
