// A run of any task, as the processes of its group drive it.
#pragma once

#include <chrono>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "base/directories.h"
#include "base/error.h"
#include "comm/group.h"
#include "train/event_file.h"
#include "train/optimizer.h"
#include "train/run_directory.h"
#include "train/sharded_model.h"
#include "train/trainer.h"
#include "train/training_state.h"
#include "train/training_task.h"

namespace heed {

using RunClock = std::chrono::steady_clock;

inline double seconds_since(RunClock::time_point start) {
  return std::chrono::duration<double>(RunClock::now() - start).count();
}

// False when `work` was stopped.
template <class Work>
bool completes(Work&& work) {
  try {
    work();
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::interrupted) throw;
    return false;
  }
}

// An exponential moving average that starts at its first value.
class Average {
 public:
  explicit Average(double weight) : weight_(weight) {}
  void add(double value) {
    value_ = empty_ ? value : value_ + weight_ * (value - value_);
    empty_ = false;
  }
  double value() const { return value_; }  // not a number before the first

 private:
  double weight_;
  double value_ = std::numeric_limits<double>::quiet_NaN();
  bool empty_ = true;
};

// How it begins and goes on is in trainer.cc; a step, and what becomes of it (evaluations, samples,
// checkpoints), in run.cc.
class Run {
 public:
  explicit Run(const TrainRequest& request);

  // See TrainingRun.
  void begin();
  bool advance();
  TrainSummary end();

 private:
  struct StepResult {
    double loss = 0;
    std::int64_t tokens = 0;
    double gradient_norm = 0;
    double rate_factor = 1;              // of the learning rate
    double communication = 0;            // seconds
    std::vector<PartNorm> part_norms{};  // of a step that is evaluated
    int slowest_process = 0;
  };

  void read_text(SavedState saved);
  void prepare(SavedState saved);
  void load();
  void place();
  void open_directory();
  bool asked_to_stop();
  void check_directory();
  RunRecord record() const;
  std::optional<StepResult> step();
  double learning_rate_factor() const;
  void add_up(StepResult& result, const StepLoss& computed);
  void require_finite(double value, double own, const char* what) const;
  void report(const StepResult& result, double step_seconds);
  bool due(std::int64_t every) const;
  bool is_done() const { return is_trained(settings_, position_); }
  bool finish_step();
  bool is_judged_by_bleu() const { return settings_.measure == Measure::bleu; }
  void append_metrics(const OrderedJson& line);
  bool keep_best(double cost);
  void evaluate();
  void measure();
  void sample();
  void agree_on_position();
  void save();
  void write_checkpoint();
  void save_model(const std::filesystem::path& to);
  void remember();
  bool runs_model() const;
  void keep();
  void finish(TrainSummary& summary);

  const StopFlag stop_;  // of the request; request_ has it where this process is alone
  Group& group_;
  const TrainRequest request_;
  TrainObserver& observer_;
  RunDirectory directory_;
  std::optional<DirectoryLock> lock_;  // on directory_, once it is known to be this run's
  std::optional<RunRecord> before_;    // of a run that is resumed
  TrainSettings settings_;
  ShardedModel shards_;
  std::optional<EventFile> events_;  // of the first process, where they are asked for
  std::unique_ptr<TrainingTask> task_;
  std::optional<Optimizer> optimizer_;
  RecentParameters recent_;
  RunPosition position_;
  std::int64_t saved_step_ = -1;
  std::optional<OrderedJson> measured_;  // last
  std::optional<double> save_seconds_;   // what the last checkpoint took
  std::optional<int> stopped_by_;        // the process that was asked to stop, if not all were
  std::int64_t tokens_ = 0;              // of this session's steps
  double stepping_ = 0;                  // seconds that they took
  double flops_per_token_ = 0;
  Average loss_{0.05};
  Average step_tokens_{0.05};
  Average step_seconds_{0.05};
};

// Checks before the first step: of what all processes of a group, and a resumed run and its
// beginning, have in common.

// Throws AgreedError{conflict} unless every process of the group trains the same: run directory,
// settings, text, tokenizer, position, and this version of heed.
void require_same_run(Group& group, const RunDirectory& directory, const RunRecord& record,
                      const RunPosition& position);

// Throws AgreedError{diverged} with `message` and the first process whose own number is not finite;
// alone Error{diverged}.
[[noreturn]] void fail_diverged(Group& group, double own, const std::string& message);

// For a resumed run, as the following checks. Throws Error{conflict} naming the settings that
// differ.
void require_same_settings(const RunRecord& before, const TrainSettings& now,
                           const RunDirectory& directory);

// Throws Error{conflict} where the training or validation tokens differ.
void require_same_text(const RunRecord& before, const RunRecord& now, const TrainRequest& request,
                       const RunDirectory& directory);

// The same error, for a text that can no longer be read as the run read it, with the reason.
[[noreturn]] void fail_on_other_text(const TrainRequest& request, const RunDirectory& directory,
                                     const std::string& why);

// Throws Error{conflict} where a run has done more steps than its settings now ask for.
void require_steps_left(const RunPosition& position, const TrainSettings& settings);

// A notice where the number of threads differs, since the order of sums depends on it.
std::optional<std::string> thread_notice(const RunRecord& before);

// The group of the request, or one of this process alone.
Group& group_of(const TrainRequest& request);

// The observer of the first process; one that ignores everything for the others.
TrainObserver& observer_of(const TrainRequest& request, const Group& group);

// A process of a group cannot leave a step that the others go on with: it is stopped between them.
TrainRequest without_stop(TrainRequest request);

// With an absolute path of the tokenizer, as runs are resumed from anywhere, and without a preset's
// end-of-text token, as the tokenizer has its own.
TrainSettings settings_of(const TrainRequest& request);

// Paths as runs record them: runs are resumed from anywhere.
inline std::string absolute_text(const std::filesystem::path& path) {
  return path.empty() ? "" : std::filesystem::absolute(path).string();
}

}  // namespace heed
