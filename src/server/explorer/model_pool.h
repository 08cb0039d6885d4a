// The models available for traces: the explored model, and checkpoints of runs.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "engine/loaded_model.h"
#include "server/explorer/runs.h"

namespace heed::server {

struct ChosenModel {
  std::shared_ptr<const LoadedModel> model;
  std::string run;         // empty: the explored model
  std::int64_t step = -1;  // of the run
};

class ModelPool {
 public:
  // Both are borrowed.
  ModelPool(const LoadedModel& explored, const Runs& runs);

  ChosenModel explored() const { return {explored_}; }

  // Loads a model, unless it is one of the three most recently used. Throws Error{not_found} for a
  // run or checkpoint that does not exist.
  ChosenModel checkpoint(const std::string& run, std::int64_t step);

 private:
  const Runs& runs_;
  std::shared_ptr<const LoadedModel> explored_;
  std::list<ChosenModel> loaded_;  // most recently used first
};

}  // namespace heed::server
