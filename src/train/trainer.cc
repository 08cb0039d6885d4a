#include "train/trainer.h"

#include <algorithm>

#include "base/files.h"
#include "base/threads.h"
#include "comm/group.h"
#include "kernels/kernels.h"
#include "train/process_grid.h"
#include "train/run.h"

namespace heed {
namespace {

std::unique_ptr<TrainingTask> make_task(const TaskContext& context) {
  return context.settings.task == Task::pairs ? make_pair_task(context)
                                              : make_language_model_task(context);
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
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
  SavedState saved = SavedState::none;
  agreed(group_, [&] {
    const auto shard = static_cast<int>(settings_.shard);
    require(request.device.is_cpu() || group_.is_alone() || shard == 1, ErrorCode::unsupported,
            "{} processes on devices exchange gradients and parameters through the processors' "
            "memory, which has all of them: shard={}, expected 1",
            group_.size(), shard);
    settings_.validate();
    check_directory();
    // A run that was stopped before its first checkpoint starts again from the beginning.
    if (request.start == RunStart::resume && holds_training_state(directory_.last())) {
      saved = SavedState::present;
    }
    read_text(saved);
  });
  prepare(saved);
  if (saved == SavedState::present) load();
  place();
  if (group_.is_alone()) optimizer_->place(request_.device);
  agreed(group_, [&] { require_steps_left(position_, settings_); });
  flops_per_token_ = task_->flops_per_token();
  require_same_run(group_, directory_, record(), position_);
  agreed(group_, [&] {
    if (group_.is_first()) open_directory();
  });
  save();
}

// Of a run that is resumed, what cannot be read was read when it began: the text has changed.
void Run::read_text(SavedState saved) {
  static_cast<void>(ProcessGrid(group_, settings_));  // throws where the processes do not fit
  const auto read = [&] {
    task_ = make_task({request_, settings_, observer_, directory_, group_, shards_});
    task_->prepare_text(saved);
  };
  if (!before_) return read();
  try {
    read();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    fail_on_other_text(request_, directory_, error.what());
  }
  require_same_text(*before_, record(), request_, directory_);
}

// The model and the optimizer, as the run begins or goes on. The first process comes first: where
// settings leave the precision open, its machine decides for all.
void Run::prepare(SavedState saved) {
  const auto make = [&] {
    task_->prepare_model(saved);
    optimizer_.emplace(task_->parameters().layout(), settings_, shards_.shards().own());
    require_going_on(request_, saved);
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
  if (!before_) {
    OutputDirectory made(directory_.root());
    lock_.emplace(directory_.root());
    directory_.create(record());
    directory_.remove_model();
    made.keep();
  } else {
    if (const auto notice = thread_notice(*before_)) observer_.noticed(*notice);
    if (before_->settings.steps != settings_.steps) {
      before_->settings.steps = settings_.steps;
      directory_.replace_record(*before_);
    }
  }
  directory_.remove_abandoned();
  directory_.truncate_metrics(position_);
  if (!request_.tensorboard.empty()) {
    events_.emplace(request_.tensorboard, seconds_since_1970() - position_.seconds);
    if (before_) add_metrics(*events_, directory_.metrics_file());
  }
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
    require(request_.replaces_model || !directory_.holds_a_model(), ErrorCode::conflict,
            "'{0}' already holds a model: choose another --out, to train on from that model with "
            "--from '{0}', or replace it with --force",
            directory_.root().string());
    return;
  }
  before_ = directory_.read_record();
  RunRecord record = *before_;
  // These may change, like the number of processes.
  record.settings.shard = settings_.shard;
  record.settings.sequence_parallel = settings_.sequence_parallel;
  record.settings.steps = settings_.steps;
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

void Run::begin() {
  RunDescription description = task_->description();
  description.first_step = position_.step;
  description.settings = settings_;
  description.processes = group_.size();
  observer_.started(description);
  if (position_.step == 0 && !asked_to_stop()) keep();
  if (!position_.evaluated && finish_step()) write_checkpoint();
}

bool Run::advance() {
  if (!position_.evaluated || is_done() || asked_to_stop()) return false;
  const RunClock::time_point step_start = RunClock::now();
  const std::optional<StepResult> result = step();
  if (!result) return false;
  const double step_seconds = seconds_since(step_start);
  stepping_ += step_seconds;
  position_.seconds += step_seconds;
  report(*result, step_seconds);
  if (finish_step() && due(settings_.checkpoint_every)) save();
  return true;
}

TrainSummary Run::end() {
  save();
  TrainSummary summary{.steps = position_.step,
                       .train_loss = loss_.value(),
                       .seconds = position_.seconds,
                       .checkpoint = saved_step_ < 0 ? "" : directory_.last(),
                       .interrupted = !is_done() || !position_.evaluated,
                       .stopped_by = stopped_by_};
  summary.tokens_per_second = stepping_ > 0 ? static_cast<double>(tokens_) / stepping_ : 0;
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

void require_going_on(const TrainRequest& request, SavedState saved) {
  require(saved == SavedState::present || !stop_requested(request.stop), ErrorCode::interrupted,
          "stopped before the first step");
}

TrainingRun::TrainingRun(const TrainRequest& request) : run_(std::make_unique<Run>(request)) {
  run_->begin();
}

TrainingRun::~TrainingRun() = default;

bool TrainingRun::step() { return run_->advance(); }

TrainSummary TrainingRun::finish() { return run_->end(); }

TrainSummary train(const TrainRequest& request) {
  TrainingRun run(request);
  while (run.step()) {
  }
  return run.finish();
}

}  // namespace heed
