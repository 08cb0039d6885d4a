// The models that traces are made with: the one that is explored, and checkpoints of runs.
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
  std::string run;         // empty: the model that is explored
  std::int64_t step = -1;  // of the run
};

class ModelPool {
 public:
  // Both are borrowed.
  ModelPool(const LoadedModel& explored, const Runs& runs);

  ChosenModel explored() const { return {explored_}; }

  // Loads it, unless it is among the three used last. Throws Error{not_found} for a run or a
  // checkpoint that there is not.
  ChosenModel checkpoint(const std::string& run, std::int64_t step);

 private:
  const Runs& runs_;
  std::shared_ptr<const LoadedModel> explored_;
  std::list<ChosenModel> loaded_;  // the one used last first
};

}  // namespace heed::server
