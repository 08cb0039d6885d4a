// What a run trains: its text, its model, and how a step's gradients are computed. Everything else
// about a run (directory, schedule, optimizer, checkpoints, evaluations, resuming) is the runner's,
// in trainer.cc, and the same for every task.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/group.h"
#include "model/parameters.h"
#include "train/optimizer.h"
#include "train/run_directory.h"
#include "train/sharded_model.h"
#include "train/trainer.h"
#include "train/training_state.h"

namespace heed {

// What the runner lends its task. `settings` are completed by it with what the text decides.
struct TaskContext {
  const TrainRequest& request;
  TrainSettings& settings;
  TrainObserver& observer;
  const RunDirectory& directory;
  Group& group;
  ShardedModel& shards;  // which the task plans, and which holds its parameters and gradients
};

// The loss of a step, and what it was computed from. In a group the loss is that of this process'
// share, and the tokens are those of all.
struct StepLoss {
  LossSum loss;
  std::int64_t tokens = 0;  // as speed is counted: of a text, or of the targets of pairs
};

// Whether the run goes on from a checkpoint of its own.
enum class SavedState { none, present };

class TrainingTask {
 public:
  virtual ~TrainingTask() = default;

  // Called once each, in this order. With a checkpoint, the tokenizer is that of the run's last/,
  // and parameters are loaded by the runner. Both may throw Error{interrupted}.
  virtual void prepare_text(SavedState saved) = 0;
  virtual void prepare_model(SavedState saved) = 0;

  // What the run's record says of text and tokenizer; the runner sets everything else.
  virtual RunRecord record() const = 0;
  // A description of texts, parameters and memory.
  virtual RunDescription description() const = 0;

  virtual Parameters& parameters() = 0;
  // Gives passes the parameters as they are now, on the device of the request.
  virtual void place() = 0;
  virtual Gradients& gradients() = 0;
  virtual double flops_per_token() const = 0;  // of training

  // Fills gradients() with those of step `step` (from 0), of the batches at `position`, which moves
  // on: in a group of this process' share of them, which add up to those of the step. Throws
  // Error{interrupted} when stopped.
  virtual StepLoss compute_gradients(std::int64_t step, DataPosition& position) = 0;

  virtual bool has_validation() const = 0;
  // Called by all processes together. `batches`: as in EvaluationOptions. Throws Error{interrupted}
  // when stopped.
  virtual Evaluation evaluate(std::int64_t batches) const = 0;
  // What settings.measure and the request ask for; nothing where they ask for nothing.
  virtual std::optional<OrderedJson> measure() const = 0;
  virtual std::optional<std::string> sample() const = 0;

  // With the record of what it has read by `position` (tokenizer/reading.h).
  virtual void save_model(const std::filesystem::path& directory,
                          const RunPosition& position) const = 0;
  // What save_model() does of reading parameters: where no process has all of them, the others do
  // this while one saves.
  virtual void read_along() const = 0;
};

// Opens the files of the request: missing and empty ones are refused here.
std::unique_ptr<TrainingTask> make_language_model_task(const TaskContext& context);
std::unique_ptr<TrainingTask> make_pair_task(const TaskContext& context);

// The hooks of the request, or none.
PassHooks make_hooks(const TrainRequest& request, const Architecture& architecture);

// Throws Error{interrupted} where a run that has no checkpoint yet is asked to stop.
void require_going_on(const TrainRequest& request, SavedState saved);

}  // namespace heed
