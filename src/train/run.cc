#include "train/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/threads.h"
#include "heed/version.h"
#include "model/here.h"
#include "train/optimizer.h"

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
  task_->parameters().fetch();  // those that are best are saved
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
  task_->parameters().fetch();
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
  task_->parameters().fetch();
  const std::optional<std::string> text = task_->sample();
  if (!text) return;
  OrderedJson line;
  line["step"] = position_.step;
  line["sample"] = *text;
  append_metrics(line);
  observer_.sampled(position_.step, *text);
}

// Gives passes on a device the parameters that this process has, once all have arrived.
void Run::place() {
  if (request_.device.is_cpu()) return;
  shards_.finish();
  task_->place();
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
    task_->save_model(to, position_);
  } else if (shards_.runs_together()) {
    task_->read_along();
  }
}

// The parameters of an evaluation, where the last ones are averaged.
void Run::remember() {
  if (settings_.average_checkpoints == 0) return;
  task_->parameters().fetch();
  const NumberStream parameters = shards_.parameter_stream();
  if (group_.is_first()) {
    recent_.add(position_.step, {parameters, std::ssize(task_->parameters().all())});
  } else {
    parameters([](std::span<const float>) {});
  }
}

void Run::write_checkpoint() {
  constexpr std::int64_t copies = 4;  // the model; in the state, parameters and both moments
  task_->parameters().fetch();
  const std::span<const float> parameters = task_->parameters().all();
  observer_.saving(
      {.step = position_.step,
       .bytes = copies * std::ssize(parameters) * static_cast<std::int64_t>(sizeof(float)),
       .expected_seconds = save_seconds_,
       .stopping = stop_requested(stop_)});
  const RunClock::time_point start = RunClock::now();
  shards_.finish();
  const auto here = [](std::span<const float> moments) {
    return Here({moments.data(), {std::ssize(moments)}});
  };
  const Here first = here(optimizer_->first_moment()), second = here(optimizer_->second_moment());
  heed::write_checkpoint(directory_.last(), group_,
                         {.position = position_,
                          .run = of_first(group_, group_.is_first() ? directory_.key() : ""),
                          .arrays = {shards_.shards().own(), parameters, first.values().span(),
                                     second.values().span()},
                          .save_model = [this] { save_model(directory_.last()); }});
  save_seconds_ = seconds_since(start);
  observer_.saved(position_.step, directory_.last());
  saved_step_ = position_.step;
}

void Run::keep() {
  if (settings_.keep_every == 0) return;
  task_->parameters().fetch();
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
    place();
    save_model(directory_.average());
    summary.checkpoint = directory_.average();
  }
  if (task_->has_validation()) {
    summary.validation = task_->evaluate(/*batches=*/0);
    // Of the mean; what was measured last is of the last step.
    if (summary.averaged > 0 && runs_model()) measured_ = task_->measure();
  }
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

// Losses and gradients of the step, from those of all processes' shares.
void Run::add_up(StepResult& result, const StepLoss& computed) {
  shards_.finish_gradients();
  const LossSum all{
      .sum = sum(group_, computed.loss.sum),
      .count = static_cast<std::int64_t>(sum(group_, static_cast<double>(computed.loss.count)))};
  result.loss = all.mean();
  require_finite(result.loss, computed.loss.sum, "loss");
}

// A step that is stopped leaves parameters and position as they were, and returns nothing.
std::optional<Run::StepResult> Run::step() {
  const RunPosition before = position_;
  StepLoss computed;
  const RunClock::time_point start = RunClock::now();
  const double exchanging = group_.seconds();
  shards_.begin_step();
  if (!completes([&] { computed = task_->compute_gradients(position_.step, position_.data); })) {
    position_ = before;
    return std::nullopt;
  }
  StepResult result{.tokens = computed.tokens};
  const double computing = seconds_since(start) - (group_.seconds() - exchanging);
  add_up(result, computed);
  const std::vector<double> times = gather(group_, computing);
  result.slowest_process = static_cast<int>(std::ranges::max_element(times) - times.begin());
  // The update is only made once the gradients are known to be finite: a checkpoint never holds
  // anything else.
  const double own = optimizer_->squared_norm(task_->gradients());
  const double squared_norm = sum(group_, own);
  require_finite(squared_norm, own, "squared norm of the gradients");
  result.gradient_norm = std::sqrt(squared_norm);
  result.rate_factor = learning_rate_factor();
  shards_.finish();
  optimizer_->update(position_.step, task_->gradients(), task_->parameters(),
                     {.gradient_norm = result.gradient_norm, .rate_factor = result.rate_factor});
  shards_.share_parameters();
  if (!group_.is_alone()) place();
  ++position_.step;
  if (due(settings_.evaluate_every)) {
    result.part_norms = gradient_norms(task_->parameters().architecture(), task_->gradients(),
                                       shards_.shards().own(), group_);
  }
  result.communication = group_.seconds() - exchanging;
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
  for (const PartNorm& each : result.part_norms) line["gradient_norms"][each.part] = each.norm;
  append_metrics(line);
  observer_.stepped(report);
}

namespace {

// Longer values are cut off in messages.
constexpr std::size_t max_letters = 60;

OrderedJson description(const RunDirectory& directory, const RunRecord& record,
                        const RunPosition& position) {
  OrderedJson all = settings_to_json(record.settings);
  all["run directory"] = absolute_text(directory.root());
  all["version of heed"] = version;
  all["text"] = record.data_key;
  all["validation text"] = record.validation_key;
  all["tokenizer"] = record.tokenizer_key;
  all["model to fine-tune"] = record.from;
  all["step"] = position.step;
  return all;
}

std::string shown(const OrderedJson& value) {
  const std::string text = value.dump();
  return text.size() > max_letters ? text.substr(0, max_letters) + "…" : text;
}

// The first difference of process `rank`, in words; empty: none.
std::string difference(const std::string& first, const std::string& other, int rank) {
  if (first == other) return "";
  const OrderedJson one = OrderedJson::parse(first), two = OrderedJson::parse(other);
  for (const auto& [name, value] : one.items()) {
    const OrderedJson now = two.contains(name) ? two[name] : OrderedJson();
    if (value != now) {
      return fmt::format("process {} differs from process 0 in {}: {} instead of {}", rank, name,
                         shown(now), shown(value));
    }
  }
  return fmt::format("process {} differs from process 0", rank);
}

}  // namespace

void require_same_run(Group& group, const RunDirectory& directory, const RunRecord& record,
                      const RunPosition& position) {
  if (group.is_alone()) return;
  const std::vector<std::string> all =
      gather(group, description(directory, record, position).dump());
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const std::string found = difference(all.front(), all[rank], static_cast<int>(rank));
    if (!found.empty()) {
      throw AgreedError(ErrorCode::conflict,
                        found + "; all processes of a run are started with the same command",
                        group.is_first() ? Speaker::this_member : Speaker::another);
    }
  }
}

void fail_diverged(Group& group, double own, const std::string& message) {
  if (group.is_alone()) throw Error(ErrorCode::diverged, message);
  const std::vector<double> all = gather(group, own);
  const auto first = std::ranges::find_if(all, [](double value) { return !std::isfinite(value); });
  const std::string where =
      first == all.end() ? "" : fmt::format(" (first in process {})", first - all.begin());
  throw AgreedError(ErrorCode::diverged, message + where,
                    group.is_first() ? Speaker::this_member : Speaker::another);
}

void require_same_settings(const RunRecord& before, const TrainSettings& now,
                           const RunDirectory& directory) {
  const auto differences = settings_differences(before.settings, now);
  require(differences.empty(), ErrorCode::conflict,
          "'{}' was started with other settings ({}): resume it without changes, or start a new "
          "run from it with --from '{}'",
          directory.root().string(), fmt::join(differences, "; "), directory.last().string());
}

void require_same_text(const RunRecord& before, const RunRecord& now, const TrainRequest& request,
                       const RunDirectory& directory) {
  if (before.data_key != now.data_key || before.tokenizer_key != now.tokenizer_key) {
    fail_on_other_text(request, directory, "");
  }
  require(before.validation_key.empty() || before.validation_key == now.validation_key,
          ErrorCode::conflict,
          "'{}' was started with other validation text than '{}' gives now: restore it, or start "
          "a new run from it with --from '{}'",
          directory.root().string(),
          request.validation.empty() ? request.data.back().string() : request.validation.string(),
          directory.last().string());
}

void fail_on_other_text(const TrainRequest& request, const RunDirectory& directory,
                        const std::string& why) {
  fail(ErrorCode::conflict,
       "'{}' was started on other text than '{}' holds now{}: restore the data, or start a new run "
       "from it with --from '{}'",
       directory.root().string(), request.data.front().string(),
       why.empty() ? "" : " (" + why + ")", directory.last().string());
}

void require_steps_left(const RunPosition& position, const TrainSettings& settings) {
  require(position.step <= settings.steps, ErrorCode::conflict,
          "the run has done {} steps, more than steps={}: resume it with at least as many",
          position.step, settings.steps);
}

std::optional<std::string> thread_notice(const RunRecord& before) {
  if (before.threads == 0 || before.threads == thread_count()) return std::nullopt;
  return fmt::format(
      "the run began with {} thread{} and is resumed with {}: its numbers will differ "
      "by rounding from those of an uninterrupted run; -t {} avoids that",
      before.threads, before.threads == 1 ? "" : "s", thread_count(), before.threads);
}

TrainObserver& observer_of(const TrainRequest& request, const Group& group) {
  static TrainObserver none;
  return request.observer != nullptr && group.is_first() ? *request.observer : none;
}

Group& group_of(const TrainRequest& request) {
  static const std::unique_ptr<Group> alone = single_group();
  return request.group != nullptr ? *request.group : *alone;
}

TrainRequest without_stop(TrainRequest request) {
  if (!group_of(request).is_alone()) request.stop = nullptr;
  return request;
}

TrainSettings settings_of(const TrainRequest& request) {
  TrainSettings settings = request.settings;
  if (request.start == RunStart::fresh && request.from.empty()) settings.model.end_of_text = -1;
  if (settings.tokenizer != "char" && settings.tokenizer != "bpe") {
    settings.tokenizer = absolute_text(settings.tokenizer);
  }
  return settings;
}

}  // namespace heed
