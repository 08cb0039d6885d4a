#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/directory_lock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/threads.h"
#include "comm/agreement.h"
#include "kernels/kernels.h"
#include "train/absolute_path.h"
#include "train/average.h"
#include "train/group_checks.h"
#include "train/optimizer.h"
#include "train/recent_parameters.h"
#include "train/resume_checks.h"
#include "train/run_directory.h"
#include "train/run_request.h"
#include "train/schedule.h"
#include "train/shards.h"
#include "train/training_state.h"
#include "train/training_task.h"

namespace heed {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
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

std::unique_ptr<TrainingTask> make_task(const TaskContext& context) {
  return context.settings.task == Task::pairs ? make_pair_task(context)
                                              : make_language_model_task(context);
}

// A run of any task.
class Run {
 public:
  explicit Run(const TrainRequest& request);

  TrainSummary train();

 private:
  struct StepResult {
    double loss = 0;
    std::int64_t tokens = 0;
    double gradient_norm = 0;
    double rate_factor = 1;    // of the learning rate
    double communication = 0;  // seconds
    int slowest_process = 0;
  };

  void prepare(bool has_checkpoint);
  void open_directory();
  bool asked_to_stop() const;
  void check_directory();
  RunRecord record() const;
  std::optional<StepResult> step();
  double learning_rate_factor() const;
  void add_up(StepResult& result, const StepLoss& computed, double seconds);
  void require_finite(double value, double own, const char* what) const;
  void report(const StepResult& result, double step_seconds);
  bool due(std::int64_t every) const;
  bool is_done() const { return is_trained(settings_, position_); }
  bool finish_step();
  bool is_judged_by_bleu() const { return settings_.measure == Measure::bleu; }
  bool keep_best(double cost);
  void evaluate();
  void measure();
  void sample();
  void agree_on_position();
  void save();
  void write_checkpoint();
  void write_files(const TrainingArrays& arrays);
  void keep();
  void finish(TrainSummary& summary);

  const StopFlag stop_;  // of the request; request_ has it where this process is alone
  Group& group_;
  const TrainRequest request_;
  TrainObserver& observer_;
  RunDirectory directory_;
  std::optional<DirectoryLock> lock_;  // on directory_, once it is known to be this run's
  TrainSettings settings_;
  std::unique_ptr<TrainingTask> task_;
  std::optional<Shards> shards_;
  std::optional<Optimizer> optimizer_;
  RecentParameters recent_;
  RunPosition position_;
  std::int64_t saved_step_ = -1;
  std::optional<OrderedJson> measured_;  // last
  std::optional<double> save_seconds_;   // what the last checkpoint took
  std::int64_t tokens_ = 0;              // of this session's steps
  double flops_per_token_ = 0;
  Average loss_{0.05};
  Average step_tokens_{0.05};
  Average step_seconds_{0.05};
};

Run::Run(const TrainRequest& request)
    : stop_(request.stop),
      group_(group_of(request)),
      request_(without_stop(request)),
      observer_(observer_of(request, group_)),
      directory_(request.out),
      settings_(settings_of(request)),
      recent_(directory_.evaluations(), settings_.average_checkpoints) {
  bool has_checkpoint = false;
  agreed(group_, [&] {
    task_ = make_task({request_, settings_, observer_, directory_, group_});
    settings_.validate();
    check_directory();
    // A run that was stopped before its first checkpoint starts again from the beginning.
    has_checkpoint =
        request.start == RunStart::resume && std::filesystem::exists(directory_.state_file());
    task_->prepare_text(has_checkpoint);
  });
  prepare(has_checkpoint);
  flops_per_token_ = task_->flops_per_token();
  if (has_checkpoint) saved_step_ = position_.step;
  require_same_run(group_, record(), position_);
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
    shards_.emplace(task_->parameters().all().size(), group_);
    optimizer_.emplace(task_->parameters().layout(), settings_, shards_->own());
    require_going_on(request_, has_checkpoint);
    if (has_checkpoint) {
      position_ = load_training_state(directory_.state_file(), task_->parameters(), *optimizer_);
    }
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
bool Run::asked_to_stop() const { return any(group_, stop_requested(stop_)); }

// Before any work: whether this directory is what the request says it is.
void Run::check_directory() {
  if (request_.start == RunStart::fresh) {
    require(!directory_.holds_a_run(), ErrorCode::conflict,
            "'{}' already holds a run: continue it with --resume, or choose another --out",
            directory_.root().string());
    return;
  }
  const RunRecord record = directory_.read_record();
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

// `value` is the same for all processes, `own` what this one added to it.
void Run::require_finite(double value, double own, const char* what) const {
  if (std::isfinite(value)) return;
  fail_diverged(
      group_, own,
      fmt::format(
          "the {} became {} at step {} (learning rate {:.3g}): the checkpoint of step {} in "
          "'{}' is intact; try a lower learning_rate, a longer warmup_steps or a smaller "
          "clip",
          what, value, position_.step + 1, learning_rate_at(settings_, position_.step),
          std::max<std::int64_t>(saved_step_, 0), directory_.last().string()));
}

double Run::learning_rate_factor() const {
  const double own =
      request_.learning_rate_factor != nullptr ? request_.learning_rate_factor->load() : 1.0;
  return of_first(group_, own);
}

// Losses and gradients of the step, from those of all processes' shares, which took this one
// `seconds`.
void Run::add_up(StepResult& result, const StepLoss& computed, double seconds) {
  const Clock::time_point start = Clock::now();
  const LossSum all{
      .sum = sum(group_, computed.loss.sum),
      .count = static_cast<std::int64_t>(sum(group_, static_cast<double>(computed.loss.count)))};
  result.loss = all.mean();
  require_finite(result.loss, computed.loss.sum, "loss");
  const std::vector<double> times = gather(group_, seconds);
  result.slowest_process = static_cast<int>(std::ranges::max_element(times) - times.begin());
  shards_->add_up(task_->gradients().all());
  result.communication = seconds_since(start);
}

// A step that is stopped leaves parameters and position as they were, and returns nothing.
std::optional<Run::StepResult> Run::step() {
  const RunPosition before = position_;
  StepLoss computed;
  const Clock::time_point start = Clock::now();
  if (!completes([&] { computed = task_->compute_gradients(position_.step, position_.data); })) {
    position_ = before;
    return std::nullopt;
  }
  StepResult result{.tokens = computed.tokens};
  add_up(result, computed, seconds_since(start));
  // The update is only made once the gradients are known to be finite: a checkpoint never holds
  // anything else.
  const double own = optimizer_->squared_norm(task_->gradients());
  const double squared_norm = sum(group_, own);
  require_finite(squared_norm, own, "squared norm of the gradients");
  result.gradient_norm = std::sqrt(squared_norm);
  result.rate_factor = learning_rate_factor();
  optimizer_->update(position_.step, task_->gradients(), task_->parameters(),
                     {.gradient_norm = result.gradient_norm, .rate_factor = result.rate_factor});
  const Clock::time_point updated = Clock::now();
  shards_->share(task_->parameters().all());
  ++position_.step;
  if (due(settings_.evaluate_every)) shards_->share(task_->gradients().all());  // for their norms
  result.communication += seconds_since(updated);
  return result;
}

void Run::report(const StepResult& result, double step_seconds) {
  loss_.add(result.loss);
  step_seconds_.add(step_seconds);
  const auto tokens = static_cast<double>(result.tokens);
  step_tokens_.add(tokens);
  tokens_ += result.tokens;
  const double tokens_per_second = step_tokens_.value() / step_seconds_.value();
  const StepReport report{
      .step = position_.step,
      .steps = settings_.steps,
      .loss = result.loss,
      .learning_rate = learning_rate_at(settings_, position_.step - 1) * result.rate_factor,
      .gradient_norm = result.gradient_norm,
      .tokens_per_second = tokens_per_second,
      .flops_per_second = tokens_per_second * flops_per_token_,
      .seconds_left = static_cast<double>(settings_.steps - position_.step) * step_seconds_.value(),
      .communication = group_.is_alone() ? 0 : result.communication / step_seconds,
      .slowest_process = result.slowest_process};
  if (!group_.is_first()) return;
  OrderedJson line;
  line["step"] = report.step;
  line["loss"] = report.loss;
  line["learning_rate"] = report.learning_rate;
  line["gradient_norm"] = report.gradient_norm;
  line["tokens_per_s"] = tokens / step_seconds;
  line["seconds"] = position_.seconds;
  if (!group_.is_alone()) {
    line["communication"] = report.communication;
    line["slowest_process"] = report.slowest_process;
  }
  if (due(settings_.evaluate_every)) {
    for (const PartNorm& each : task_->part_norms()) {
      line["gradient_norms"][each.part] = each.norm;
    }
  }
  directory_.append_metrics(line);
  observer_.stepped(report);
}

bool Run::due(std::int64_t every) const { return every > 0 && position_.step % every == 0; }

// Evaluates, measures, samples and keeps what is due after a step. False when it is stopped: it is
// then repeated from its beginning when the run is resumed.
bool Run::finish_step() {
  bool is_last = position_.step == settings_.steps;
  const RunPosition before = position_;
  position_.evaluated = !group_.is_first() || completes([&] {
    if (due(settings_.evaluate_every) || is_last) {
      evaluate();
      measure();
      recent_.add(position_.step, task_->parameters());
    }
    if (due(settings_.sample_every)) sample();
  });
  if (!position_.evaluated) {
    position_.best_cost = before.best_cost;
    position_.best_step = before.best_step;
  }
  agree_on_position();
  if (!position_.evaluated) return false;
  is_last = is_done();
  if (due(settings_.keep_every) || is_last) keep();
  return true;
}

// What the first process found out.
void Run::agree_on_position() {
  if (group_.is_alone()) return;
  position_.evaluated = of_first(group_, static_cast<double>(position_.evaluated)) != 0;
  position_.best_cost = of_first(group_, position_.best_cost);
  position_.best_step =
      static_cast<std::int64_t>(of_first(group_, static_cast<double>(position_.best_step)));
}

// Saves the model in best/ if `cost` is lower than at every evaluation before.
bool Run::keep_best(double cost) {
  if (!(cost < position_.best_cost)) return false;
  position_.best_cost = cost;
  position_.best_step = position_.step;
  task_->save_model(directory_.best());
  return true;
}

void Run::evaluate() {
  if (!task_->has_validation()) return;
  const Evaluation evaluation = task_->evaluate(settings_.evaluation_batches);
  const bool is_best = !is_judged_by_bleu() && keep_best(evaluation.nats_per_token);
  OrderedJson line;
  line["step"] = position_.step;
  line["val_loss"] = evaluation.nats_per_token;
  if (evaluation.standard_error) line["val_standard_error"] = *evaluation.standard_error;
  directory_.append_metrics(line);
  observer_.evaluated(position_.step, evaluation, is_best);
}

void Run::measure() {
  const std::optional<OrderedJson> measured = task_->measure();
  if (!measured) return;
  const bool is_best = is_judged_by_bleu() && keep_best(-measured->at("bleu").get<double>());
  measured_ = measured;
  OrderedJson line;
  line["step"] = position_.step;
  line.update(*measured);
  directory_.append_metrics(line);
  observer_.measured(position_.step, *measured, is_best);
}

void Run::sample() {
  const std::optional<std::string> text = task_->sample();
  if (!text) return;
  OrderedJson line;
  line["step"] = position_.step;
  line["sample"] = *text;
  directory_.append_metrics(line);
  observer_.sampled(position_.step, *text);
}

// A run that is stopped before its first checkpoint has nothing to lose.
void Run::save() {
  const bool is_untrained = saved_step_ < 0 && position_.step == 0;
  if (is_untrained && asked_to_stop()) return;
  if (saved_step_ != position_.step) write_checkpoint();
}

// The first process writes, with the moments that the others keep.
void Run::write_checkpoint() {
  std::vector<float> moments[2];
  if (!group_.is_alone()) {
    if (group_.is_first()) {
      for (std::vector<float>& each : moments) each.resize(task_->parameters().all().size());
    }
    shards_->collect(optimizer_->first_moment(), moments[0]);
    shards_->collect(optimizer_->second_moment(), moments[1]);
  }
  if (group_.is_first()) {
    write_files(group_.is_alone()
                    ? TrainingArrays{task_->parameters().all(), optimizer_->first_moment(),
                                     optimizer_->second_moment()}
                    : TrainingArrays{task_->parameters().all(), moments[0], moments[1]});
  }
  saved_step_ = position_.step;
}

void Run::write_files(const TrainingArrays& arrays) {
  constexpr std::int64_t copies = 4;  // the model; in the state, parameters and both moments
  observer_.saving({.step = position_.step,
                    .bytes = copies * std::ssize(task_->parameters().all()) *
                             static_cast<std::int64_t>(sizeof(float)),
                    .expected_seconds = save_seconds_,
                    .stopping = stop_requested(stop_)});
  const Clock::time_point start = Clock::now();
  task_->save_model(directory_.last());
  // The state comes last, and is what --resume trusts: it holds the parameters too.
  save_training_state(directory_.state_file(), position_, arrays);
  save_seconds_ = seconds_since(start);
  observer_.saved(position_.step, directory_.last());
}

void Run::keep() {
  if (settings_.keep_every == 0 || !group_.is_first()) return;
  directory_.keep_model(position_.step,
                        [this](const std::filesystem::path& to) { task_->save_model(to); });
}

// The run's result: where the parameters of the last evaluations are averaged, their mean, which is
// saved; evaluated over the whole validation text.
void Run::finish(TrainSummary& summary) {
  if (recent_.count() > 0) {
    const std::span<float> parameters = task_->parameters().all();
    summary.averaged = recent_.average(parameters);
    task_->save_model(directory_.average());
    summary.checkpoint = directory_.average();
  }
  if (task_->has_validation()) {
    summary.validation = task_->evaluate(/*batches=*/0);
    // Of the mean; what was measured last is of the last step.
    if (summary.averaged > 0) measured_ = task_->measure();
  }
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
    const Clock::time_point step_start = Clock::now();
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
                       .interrupted = !is_done() || !position_.evaluated};
  summary.tokens_per_second = stepping > 0 ? static_cast<double>(tokens_) / stepping : 0;
  // What is left may take long; everything is saved by then.
  if (!summary.interrupted && group_.is_first()) {
    summary.interrupted = !completes([&] { finish(summary); });
  }
  summary.measured = measured_;
  return summary;
}

}  // namespace

void require_going_on(const TrainRequest& request, bool has_checkpoint) {
  require(has_checkpoint || !stop_requested(request.stop), ErrorCode::interrupted,
          "stopped before the first step");
}

TrainSummary train(const TrainRequest& request) { return Run(request).train(); }

}  // namespace heed
