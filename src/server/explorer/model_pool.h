// The models that traces are of: the explored one, others by name, checkpoints of runs, and a
// translator.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/loaded_model.h"
#include "server/explorer/memory_budget.h"
#include "server/explorer/runs.h"

namespace heed::server {

class TraceStore;

// Of one text, or a translator.
struct ChosenModel {
  std::shared_ptr<const LoadedModel> model{};
  std::string run{};       // empty: no checkpoint
  std::int64_t step = -1;  // of the run
};

// References are borrowed.
struct PoolOf {
  const LoadedModel& explored;
  std::string name;                  // of the explored model
  std::vector<std::string> aliases;  // further ones
  const Runs& runs;
  TraceStore& traces;
  std::int64_t budget;  // bytes that all but the explored model may take together
};

// Loads models when they are asked for. While they do not fit its budget, those that were used
// least recently are dropped with their traces, but none that a request in progress uses.
class ModelPool {
 public:
  explicit ModelPool(PoolOf of);

  ChosenModel explored() const { return {.model = explored_}; }
  bool is_explored(std::string_view name) const;

  // The explored model by its names or an empty one; or one of known_models(). Throws
  // Error{not_found} with the names of those that are here; HttpError{413, 429} where it does not
  // fit the budget; and what load_model() throws.
  ChosenModel named(const std::string& name);

  // One of the three most recently used, or loaded. Throws Error{not_found} for a run or checkpoint
  // that does not exist, and HttpError as named().
  ChosenModel checkpoint(const std::string& run, std::int64_t step);

  // Names of those in memory beside the explored one. Any thread may call it.
  std::vector<std::string> loaded() const;

 private:
  using Load = std::function<LoadedModel()>;
  using Wanted = std::function<bool(const ChosenModel&)>;
  // Moves it to the front; null where it is not loaded.
  const ChosenModel* find(const Wanted& wanted);
  const ChosenModel& add(ChosenModel chosen, std::int64_t parameters, const Load& load);
  bool evict();
  void drop(std::list<ChosenModel>::iterator dropped);

  PoolOf of_;
  std::shared_ptr<const LoadedModel> explored_;
  MemoryBudget budget_;
  mutable std::mutex mutex_;       // of changes to the list
  std::list<ChosenModel> loaded_;  // most recently used first
};

}  // namespace heed::server
