// What becomes of a run between its steps: evaluations, samples, checkpoints, and its result.
#include "base/files.h"
#include "train/run.h"

namespace heed {

bool Run::due(std::int64_t every) const { return every > 0 && position_.step % every == 0; }

// Evaluates, measures, samples and keeps what is due after a step. False when it is stopped: it is
// then repeated from its beginning when the run is resumed.
bool Run::finish_step() {
  bool is_last = position_.step == settings_.steps;
  const RunPosition before = position_;
  position_.evaluated = completes([&] {
    if (due(settings_.evaluate_every) || is_last) {
      evaluate();
      measure();
      remember();
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

// By the first process.
void Run::append_metrics(const OrderedJson& line) {
  if (!group_.is_first()) return;
  directory_.append_metrics(line);
  if (events_) events_->add(Json(line));
}

// Saves the model in best/ if `cost` is lower than at every evaluation before.
bool Run::keep_best(double cost) {
  if (!(cost < position_.best_cost)) return false;
  position_.best_cost = cost;
  position_.best_step = position_.step;
  save_model(directory_.best());
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
  append_metrics(line);
  observer_.evaluated(position_.step, evaluation, is_best);
}

// Whether this process measures and samples: the first, or all where none has all parameters.
bool Run::runs_model() const { return group_.is_first() || shards_.runs_together(); }

void Run::measure() {
  if (!runs_model()) return;
  const std::optional<OrderedJson> measured = task_->measure();
  if (!measured) return;
  const bool is_best = is_judged_by_bleu() && keep_best(-measured->at("bleu").get<double>());
  measured_ = measured;
  OrderedJson line;
  line["step"] = position_.step;
  line.update(*measured);
  append_metrics(line);
  observer_.measured(position_.step, *measured, is_best);
}

void Run::sample() {
  if (!runs_model()) return;
  const std::optional<std::string> text = task_->sample();
  if (!text) return;
  OrderedJson line;
  line["step"] = position_.step;
  line["sample"] = *text;
  append_metrics(line);
  observer_.sampled(position_.step, *text);
}

// A run that is stopped before its first checkpoint has nothing to lose.
void Run::save() {
  const bool is_untrained = saved_step_ < 0 && position_.step == 0;
  if (is_untrained && asked_to_stop()) return;
  if (saved_step_ != position_.step) write_checkpoint();
}

// By the first process; the others give what it does not have.
void Run::save_model(const std::filesystem::path& to) {
  if (group_.is_first()) {
    task_->save_model(to);
  } else if (shards_.runs_together()) {
    task_->read_along();
  }
}

// The parameters of an evaluation, where the last ones are averaged.
void Run::remember() {
  if (settings_.average_checkpoints == 0) return;
  const NumberStream parameters = shards_.parameter_stream();
  if (group_.is_first()) {
    recent_.add(position_.step, {parameters, std::ssize(task_->parameters().all())});
  } else {
    parameters([](std::span<const float>) {});
  }
}

void Run::write_checkpoint() {
  constexpr std::int64_t copies = 4;  // the model; in the state, parameters and both moments
  const std::span<const float> parameters = task_->parameters().all();
  observer_.saving(
      {.step = position_.step,
       .bytes = copies * std::ssize(parameters) * static_cast<std::int64_t>(sizeof(float)),
       .expected_seconds = save_seconds_,
       .stopping = stop_requested(stop_)});
  const RunClock::time_point start = RunClock::now();
  shards_.finish();
  heed::write_checkpoint(directory_.last(), group_,
                         {.position = position_,
                          .run = of_first(group_, group_.is_first() ? directory_.key() : ""),
                          .arrays = {shards_.shards().own(), parameters, optimizer_->first_moment(),
                                     optimizer_->second_moment()},
                          .save_model = [this] { save_model(directory_.last()); }});
  save_seconds_ = seconds_since(start);
  observer_.saved(position_.step, directory_.last());
  saved_step_ = position_.step;
}

void Run::keep() {
  if (settings_.keep_every == 0) return;
  if (group_.is_first()) {
    directory_.keep_model(position_.step,
                          [this](const std::filesystem::path& to) { save_model(to); });
  } else {
    save_model({});
  }
}

// The run's result: where the parameters of the last evaluations are averaged, their mean, which is
// saved; evaluated over the whole validation text.
void Run::finish(TrainSummary& summary) {
  if (recent_.count() > 0) {
    shards_.finish();
    summary.averaged = recent_.average(task_->parameters().all(), shards_.shards().own());
    shards_.share_parameters();
    save_model(directory_.average());
    summary.checkpoint = directory_.average();
  }
  if (task_->has_validation()) {
    summary.validation = task_->evaluate(/*batches=*/0);
    // Of the mean; what was measured last is of the last step.
    if (summary.averaged > 0 && runs_model()) measured_ = task_->measure();
  }
}

}  // namespace heed
