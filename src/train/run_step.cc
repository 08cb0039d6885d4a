// A step of a run, and what is reported of it.
#include <algorithm>
#include <cmath>

#include "train/group_checks.h"
#include "train/run.h"
#include "train/schedule.h"

namespace heed {

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

}  // namespace heed
