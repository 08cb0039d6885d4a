#include "train/trainer.h"

#include <algorithm>

#include "base/files.h"
#include "base/threads.h"
#include "comm/agreement.h"
#include "kernels/kernels.h"
#include "train/absolute_path.h"
#include "train/group_checks.h"
#include "train/resume_checks.h"
#include "train/run.h"
#include "train/run_request.h"

namespace heed {
namespace {

std::unique_ptr<TrainingTask> make_task(const TaskContext& context) {
  return context.settings.task == Task::pairs ? make_pair_task(context)
                                              : make_language_model_task(context);
}

}  // namespace

Run::Run(const TrainRequest& request)
    : stop_(request.stop),
      group_(group_of(request)),
      request_(without_stop(request)),
      observer_(observer_of(request, group_)),
      directory_(request.out),
      settings_(settings_of(request)),
      shards_(settings_, group_),
      recent_(directory_.evaluations(), settings_.average_checkpoints) {
  bool has_checkpoint = false;
  agreed(group_, [&] {
    task_ = make_task({request_, settings_, observer_, directory_, group_, shards_});
    settings_.validate();
    check_directory();
    // A run that was stopped before its first checkpoint starts again from the beginning.
    has_checkpoint = request.start == RunStart::resume && holds_training_state(directory_.last());
    task_->prepare_text(has_checkpoint);
  });
  prepare(has_checkpoint);
  if (has_checkpoint) load();
  flops_per_token_ = task_->flops_per_token();
  require_same_run(group_, directory_, record(), position_);
  agreed(group_, [&] {
    if (group_.is_first()) open_directory();
  });
  save();
}

// The model and the optimizer, as the run begins or goes on. The first process comes first: where
// settings leave the precision to the machine, all take the one that it found faster.
void Run::prepare(bool has_checkpoint) {
  const auto make = [&] {
    task_->prepare_model(has_checkpoint);
    optimizer_.emplace(task_->parameters().layout(), settings_, shards_.shards().own());
    require_going_on(request_, has_checkpoint);
  };
  agreed(group_, [&] {
    if (group_.is_first()) make();
  });
  if (group_.is_alone()) return;
  const auto precision = static_cast<kernels::Precision>(static_cast<int>(of_first(
      group_, static_cast<double>(settings_.precision.value_or(kernels::Precision::f32)))));
  agreed(group_, [&] {
    if (group_.is_first()) return;
    if (!settings_.precision) settings_.precision = precision;
    make();
  });
}

void Run::load() {
  agreed(group_, [&] {
    position_ = load_training_state(directory_.last(), group_, shards_.shards().own(),
                                    task_->parameters(), *optimizer_);
  });
  shards_.share_parameters();
  saved_step_ = position_.step;
}

// By the process that writes it.
void Run::open_directory() {
  if (request_.start == RunStart::fresh) {
    OutputDirectory made(directory_.root());
    lock_.emplace(directory_.root());
    directory_.create(record());
    made.keep();
  } else {
    const RunRecord before = directory_.read_record();
    require_same_text(before, record(), request_, directory_);
    if (const auto notice = thread_notice(before)) observer_.noticed(*notice);
  }
  directory_.remove_abandoned();
  directory_.truncate_metrics(position_);
  recent_.forget_after(position_.evaluated ? position_.step : position_.step - 1);
}

// The same for all processes.
bool Run::asked_to_stop() {
  const std::vector<double> all = gather(group_, stop_requested(stop_) ? 1.0 : 0.0);
  const auto asked = std::ranges::count(all, 1.0);
  if (asked < std::ssize(all) && asked > 0) {
    stopped_by_ = static_cast<int>(std::ranges::find(all, 1.0) - all.begin());
  }
  return asked > 0;
}

// Before any work: whether this directory is what the request says it is.
void Run::check_directory() {
  if (request_.start == RunStart::fresh) {
    require(!directory_.holds_a_run(), ErrorCode::conflict,
            "'{}' already holds a run: continue it with --resume, or choose another --out",
            directory_.root().string());
    return;
  }
  RunRecord record = directory_.read_record();
  // These may change, like the number of processes.
  record.settings.shard = settings_.shard;
  record.settings.sequence_parallel = settings_.sequence_parallel;
  if (group_.is_first()) lock_.emplace(directory_.root());
  if (!settings_.precision) settings_.precision = record.settings.precision;
  require_same_settings(record, settings_, directory_);
}

RunRecord Run::record() const {
  RunRecord record = task_->record();
  record.settings = settings_;
  record.from = absolute_text(request_.from);
  record.threads = thread_count();
  for (const auto& path : request_.data) record.data.push_back(absolute_text(path));
  return record;
}

TrainSummary Run::train() {
  RunDescription description = task_->description();
  description.first_step = position_.step;
  description.settings = settings_;
  description.processes = group_.size();
  observer_.started(description);
  double stepping = 0;
  if (position_.step == 0 && !asked_to_stop()) keep();
  if (!position_.evaluated && finish_step()) write_checkpoint();
  while (position_.evaluated && !is_done() && !asked_to_stop()) {
    const RunClock::time_point step_start = RunClock::now();
    const std::optional<StepResult> result = step();
    if (!result) break;
    const double step_seconds = seconds_since(step_start);
    stepping += step_seconds;
    position_.seconds += step_seconds;
    report(*result, step_seconds);
    if (finish_step() && due(settings_.checkpoint_every)) save();
  }
  save();

  TrainSummary summary{.steps = position_.step,
                       .train_loss = loss_.value(),
                       .seconds = position_.seconds,
                       .checkpoint = saved_step_ < 0 ? "" : directory_.last(),
                       .interrupted = !is_done() || !position_.evaluated,
                       .stopped_by = stopped_by_};
  summary.tokens_per_second = stepping > 0 ? static_cast<double>(tokens_) / stepping : 0;
  // What is left may take long; everything is saved by then.
  if (!summary.interrupted) summary.interrupted = !completes([&] { finish(summary); });
  summary.measured = measured_;
  shards_.finish();
  return summary;
}

PassHooks make_hooks(const TrainRequest& request, const Architecture& architecture) {
  if (!request.hooks) return {};
  const Group& group = group_of(request);
  require(group.is_alone(), ErrorCode::unsupported,
          "hooks look into the passes of one process, not of {}", group.size());
  return request.hooks(architecture);
}

void require_going_on(const TrainRequest& request, bool has_checkpoint) {
  require(has_checkpoint || !stop_requested(request.stop), ErrorCode::interrupted,
          "stopped before the first step");
}

TrainSummary train(const TrainRequest& request) { return Run(request).train(); }

}  // namespace heed
