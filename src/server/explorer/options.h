// Options of `heed explore` in addition to those of the server.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "download/download_file.h"
#include "engine/plan/scaling_plan.h"

namespace heed::server {

struct ExplorerOptions {
  std::int64_t trace_budget = std::int64_t{2} << 30;  // bytes that all traces may take together
  // Bytes that the models beside the explored one may take together.
  std::int64_t model_budget = std::int64_t{4} << 30;
  std::vector<std::filesystem::path> runs;  // directories of training runs
  std::filesystem::path corpus;             // text that neurons' contexts come from
  // Where runs trained by the server are kept; those that are there are shown.
  std::filesystem::path live_runs{};
  std::filesystem::path recorded_run{};  // the one that comes with heed; empty: it is not shown
  std::string why_no_training{};         // empty: clients may train
  // Empty: clients may download published models.
  std::string why_no_downloads = "this server does not download models";
  RetryOptions download_retry{};
  // Of this machine, by precision ("f32", "bf16"); those that are not there are measured when a
  // plan needs them.
  std::map<std::string, TrainingRates> rates{};
};

}  // namespace heed::server
