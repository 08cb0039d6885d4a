#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/directory_lock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/threads.h"
#include "kernels/kernels.h"
#include "model/gpt_files.h"
#include "model/parameter_count.h"
#include "train/average.h"
#include "train/batch_reader.h"
#include "train/corpus.h"
#include "train/first_model.h"
#include "train/gradient_norms.h"
#include "train/optimizer.h"
#include "train/resume_checks.h"
#include "train/run_directory.h"
#include "train/sample_sentence.h"
#include "train/schedule.h"
#include "train/stop_probe.h"
#include "train/training_state.h"

namespace heed {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr std::int64_t sentence_tokens = 48;

TrainObserver& observer_of(const TrainRequest& request) {
  static TrainObserver none;
  return request.observer != nullptr ? *request.observer : none;
}

std::string absolute_text(const std::filesystem::path& path) {
  return path.empty() ? "" : std::filesystem::absolute(path).string();
}

// With an absolute path of the tokenizer, as runs are resumed from anywhere, and without a preset's
// end-of-text token, as the tokenizer has its own.
TrainSettings settings_of(const TrainRequest& request) {
  TrainSettings settings = request.settings;
  if (request.start == RunStart::fresh && request.from.empty()) settings.model.end_of_text = -1;
  if (settings.tokenizer != "char" && settings.tokenizer != "bpe") {
    settings.tokenizer = absolute_text(settings.tokenizer);
  }
  return settings;
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

// Everything a run holds in memory.
class Run {
 public:
  explicit Run(const TrainRequest& request);

  TrainSummary train();

 private:
  struct StepResult {
    double loss = 0;
    double gradient_norm = 0;
    double rate_factor = 1;  // of the learning rate
  };

  void check_directory();
  void prepare_text(bool has_checkpoint);
  void prepare_model(bool has_checkpoint);
  RunRecord record() const;
  std::optional<double> entropy_per_token() const;
  std::optional<StepResult> step();
  LossSum accumulate_gradients();
  double learning_rate_factor() const;
  void require_finite(double value, const char* what) const;
  void report(const StepResult& result, double step_seconds);
  bool due(std::int64_t every) const;
  bool finish_step();
  void evaluate();
  Evaluation evaluate_on(std::int64_t batches) const;
  void measure();
  void sample();
  void save();
  void write_checkpoint();
  void keep();

  const TrainRequest& request_;
  TrainObserver& observer_;
  RunDirectory directory_;
  std::optional<DirectoryLock> lock_;  // on directory_, once it is known to be this run's
  TrainSettings settings_;
  Corpus corpus_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<TokenData> training_;
  std::optional<TokenData> validation_;
  std::optional<Gpt> gpt_;
  std::optional<Optimizer> optimizer_;
  std::optional<GptGradients> gradients_;
  std::optional<TrainingBuffers> buffers_;
  std::optional<BatchReader> batches_;
  RunPosition position_;
  std::int64_t saved_step_ = -1;
  std::optional<double> save_seconds_;  // what the last checkpoint took
  double flops_per_token_ = 0;
  Average loss_{0.05};
  Average step_seconds_{0.05};
};

Run::Run(const TrainRequest& request)
    : request_(request),
      observer_(observer_of(request)),
      directory_(request.out),
      settings_(settings_of(request)),
      corpus_(request) {
  settings_.validate();
  check_directory();
  // A run that was stopped before its first checkpoint starts again from the beginning.
  const bool has_checkpoint =
      request.start == RunStart::resume && std::filesystem::exists(directory_.state_file());
  prepare_text(has_checkpoint);
  prepare_model(has_checkpoint);
  if (request.start == RunStart::fresh) {
    OutputDirectory made(directory_.root());
    lock_.emplace(directory_.root());
    directory_.create(record());
    made.keep();
  } else {
    const RunRecord before = directory_.read_record();
    require_same_text(before, record(), request, directory_);
    if (const auto notice = thread_notice(before)) observer_.noticed(*notice);
  }
  directory_.remove_abandoned();
  if (has_checkpoint) {
    position_ = load_training_state(directory_.state_file(), gpt_->parameters(), *optimizer_);
    saved_step_ = position_.step;
  }
  directory_.truncate_metrics(position_);
  save();
}

// Before any work: whether this directory is what the request says it is.
void Run::check_directory() {
  if (request_.start == RunStart::fresh) {
    require(!directory_.holds_a_run(), ErrorCode::conflict,
            "'{}' already holds a run: continue it with --resume, or choose another --out",
            directory_.root().string());
    return;
  }
  const RunRecord record = directory_.read_record();
  lock_.emplace(directory_.root());
  require_same_settings(record, settings_, directory_);
}

void Run::prepare_text(bool has_checkpoint) {
  const auto progress = [this](const Progress& done) { observer_.preparing(done); };
  if (has_checkpoint) {
    tokenizer_ = load_tokenizer(directory_.last());
  } else if (!request_.from.empty()) {
    tokenizer_ = load_tokenizer(request_.from);
  } else {
    tokenizer_ = choose_tokenizer(settings_, corpus_, progress, request_.stop);
  }
  const TokenizeOptions options{
      .cache = request_.cache.empty() ? default_token_cache() : request_.cache,
      .progress = progress,
      .stop = request_.stop,
      .notice = [this](const std::string& sentence) { observer_.noticed(sentence); }};
  training_ = tokenize_texts(*tokenizer_, corpus_.training(), options);
  if (!corpus_.validation().empty()) {
    validation_ = tokenize_texts(*tokenizer_, corpus_.validation(), options);
    require(request_.validation.empty() || validation_->size() >= 2, ErrorCode::invalid_argument,
            "the validation text '{}' holds {} tokens; predicting takes at least 2",
            request_.validation.string(), validation_->size());
    if (validation_->size() < 2) validation_.reset();
  }
}

void Run::prepare_model(bool has_checkpoint) {
  // Between stages that take a second each with a large model.
  const auto require_not_stopped = [&] {
    require(has_checkpoint || !stop_requested(request_.stop), ErrorCode::interrupted,
            "stopped before the first step");
  };
  if (request_.from.empty()) {
    settings_.model.vocabulary_size = tokenizer_->vocabulary_size();
    settings_.model.end_of_text = tokenizer_->end_of_text().value_or(-1);
  }
  require_training_memory(settings_, available_memory());
  require_not_stopped();
  gpt_ = first_model(request_, settings_, *tokenizer_, has_checkpoint);
  require_not_stopped();
  gpt_->parameters().set_precision(settings_.precision);
  const std::int64_t length = settings_.sequence();
  batches_.emplace(*training_, settings_);
  optimizer_.emplace(settings_.model, settings_);
  gradients_.emplace(settings_.model);
  buffers_.emplace(settings_.model, settings_.batch_size, length,
                   settings_.recompute ? Keep::residuals : Keep::every_block);
  require_not_stopped();
  buffers_->loss.set_stop(request_.stop);
  GptConfig shape = settings_.model;
  shape.context = length;
  flops_per_token_ = model_cost(shape).train_flops_per_token;
}

std::optional<double> Run::entropy_per_token() const {
  if (!request_.entropy) return std::nullopt;
  const std::int64_t tokens = training_->size() + (validation_ ? validation_->size() : 0);
  return *request_.entropy / static_cast<double>(tokens);
}

RunRecord Run::record() const {
  RunRecord record{
      .settings = settings_,
      .validation = absolute_text(request_.validation),
      .from = absolute_text(request_.from),
      .tokenizer_key = tokenizer_->content_key(),
      .data_key = training_->key(),
      .validation_key = validation_ ? validation_->key() : "",
      .threads = thread_count(),
      .entropy_per_token = entropy_per_token(),
      .sentence = sample_sentence(validation_ ? corpus_.validation() : corpus_.training(),
                                  *tokenizer_, std::min(sentence_tokens, settings_.model.context))};
  for (const auto& path : request_.data) record.data.push_back(absolute_text(path));
  return record;
}

void Run::require_finite(double value, const char* what) const {
  require(
      std::isfinite(value), ErrorCode::diverged,
      "the {} became {} at step {} (learning rate {:.3g}): the checkpoint of step {} in '{}' is "
      "intact; try a lower learning_rate, a longer warmup_steps or a smaller clip",
      what, value, position_.step + 1, learning_rate_at(settings_, position_.step),
      std::max<std::int64_t>(saved_step_, 0), directory_.last().string());
}

LossSum Run::accumulate_gradients() {
  StopProbe stop(request_.stop);
  gradients_->clear();
  LossSum loss;
  const float scale = 1.0F / static_cast<float>(settings_.tokens_per_step());
  for (std::int64_t part = 0; part < settings_.accumulation; ++part) {
    batches_->read(position_.data);
    const auto pass = static_cast<std::uint64_t>(position_.step * settings_.accumulation + part);
    loss +=
        gpt_->loss_and_gradients(batches_->tokens(), batches_->targets(),
                                 {.scale = scale,
                                  .dropout = {.active = true, .seed = settings_.seed, .pass = pass},
                                  .probe = request_.stop != nullptr ? &stop : nullptr},
                                 *buffers_, *gradients_);
  }
  return loss;
}

double Run::learning_rate_factor() const {
  return request_.learning_rate_factor != nullptr ? request_.learning_rate_factor->load() : 1.0;
}

// A step that is stopped leaves parameters and position as they were, and returns nothing.
std::optional<Run::StepResult> Run::step() {
  const RunPosition before = position_;
  LossSum loss;
  if (!completes([&] { loss = accumulate_gradients(); })) {
    position_ = before;
    return std::nullopt;
  }
  require_finite(loss.mean(), "loss");
  // The update is only made once the gradients are known to be finite: a checkpoint never holds
  // anything else.
  StepResult result{.loss = loss.mean()};
  require_finite(kernels::squared_norm(gradients_->all()), "squared norm of the gradients");
  result.rate_factor = learning_rate_factor();
  result.gradient_norm =
      optimizer_->update(position_.step, *gradients_, gpt_->parameters(), result.rate_factor);
  ++position_.step;
  return result;
}

void Run::report(const StepResult& result, double step_seconds) {
  loss_.add(result.loss);
  step_seconds_.add(step_seconds);
  const auto tokens = static_cast<double>(settings_.tokens_per_step());
  const StepReport report{
      .step = position_.step,
      .steps = settings_.steps,
      .loss = result.loss,
      .learning_rate = learning_rate_at(settings_, position_.step - 1) * result.rate_factor,
      .gradient_norm = result.gradient_norm,
      .tokens_per_second = tokens / step_seconds_.value(),
      .flops_per_second = tokens / step_seconds_.value() * flops_per_token_,
      .seconds_left =
          static_cast<double>(settings_.steps - position_.step) * step_seconds_.value()};
  OrderedJson line;
  line["step"] = report.step;
  line["loss"] = report.loss;
  line["learning_rate"] = report.learning_rate;
  line["gradient_norm"] = report.gradient_norm;
  line["tokens_per_s"] = tokens / step_seconds;
  line["seconds"] = position_.seconds;
  if (due(settings_.evaluate_every)) {
    for (const PartNorm& each : gradient_norms(settings_.model, *gradients_)) {
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
  const bool is_last = position_.step == settings_.steps;
  const RunPosition before = position_;
  position_.evaluated = completes([&] {
    if (due(settings_.evaluate_every) || is_last) {
      evaluate();
      measure();
    }
    if (due(settings_.sample_every)) sample();
  });
  if (!position_.evaluated) {
    position_.best_loss = before.best_loss;
    position_.best_step = before.best_step;
    return false;
  }
  if (due(settings_.keep_every) || is_last) keep();
  return true;
}

// `batches`: as in EvaluationOptions. Throws Error{interrupted} when stopped.
Evaluation Run::evaluate_on(std::int64_t batches) const {
  Evaluator evaluator(settings_.model, {.batch_size = settings_.batch_size,
                                        .sequence_length = settings_.sequence(),
                                        .windows = settings_.windows,
                                        .batches = batches,
                                        .stop = request_.stop});
  return evaluator.evaluate(*gpt_, *validation_);
}

void Run::evaluate() {
  if (!validation_) return;
  const Evaluation evaluation = evaluate_on(settings_.evaluation_batches);
  const bool is_best = evaluation.nats_per_token < position_.best_loss;
  if (is_best) {
    position_.best_loss = evaluation.nats_per_token;
    position_.best_step = position_.step;
    directory_.save_model(directory_.best(), *gpt_, *tokenizer_);
  }
  OrderedJson line;
  line["step"] = position_.step;
  line["val_loss"] = evaluation.nats_per_token;
  if (evaluation.standard_error) line["val_standard_error"] = *evaluation.standard_error;
  directory_.append_metrics(line);
  observer_.evaluated(position_.step, evaluation, is_best);
}

void Run::measure() {
  if (!request_.measure) return;
  OrderedJson line;
  line["step"] = position_.step;
  const OrderedJson measured = request_.measure(*gpt_, *tokenizer_);
  line.update(measured);
  directory_.append_metrics(line);
  observer_.measured(position_.step, measured);
}

void Run::sample() {
  if (!request_.sample) return;
  const std::string text = request_.sample(*gpt_, *tokenizer_);
  OrderedJson line;
  line["step"] = position_.step;
  line["sample"] = text;
  directory_.append_metrics(line);
  observer_.sampled(position_.step, text);
}

// A run that is stopped before its first checkpoint has nothing to lose.
void Run::save() {
  const bool is_untrained = saved_step_ < 0 && position_.step == 0;
  if (is_untrained && stop_requested(request_.stop)) return;
  if (saved_step_ != position_.step) write_checkpoint();
}

void Run::write_checkpoint() {
  constexpr std::int64_t copies = 4;  // the model; in the state, parameters and both moments
  observer_.saving({.step = position_.step,
                    .bytes = copies * std::ssize(gpt_->parameters().all()) *
                             static_cast<std::int64_t>(sizeof(float)),
                    .expected_seconds = save_seconds_,
                    .stopping = stop_requested(request_.stop)});
  const Clock::time_point start = Clock::now();
  directory_.save_model(directory_.last(), *gpt_, *tokenizer_);
  // The state comes last, and is what --resume trusts: it holds the parameters too.
  save_training_state(directory_.state_file(), position_, gpt_->parameters(), *optimizer_);
  saved_step_ = position_.step;
  save_seconds_ = seconds_since(start);
  observer_.saved(position_.step, directory_.last());
}

void Run::keep() {
  if (settings_.keep_every == 0) return;
  directory_.keep_model(position_.step, *gpt_, *tokenizer_);
}

TrainSummary Run::train() {
  observer_.started({.parameters = count_parameters(settings_.model).total,
                     .training_tokens = training_->size(),
                     .validation_tokens = validation_ ? validation_->size() : 0,
                     .vocabulary_size = settings_.model.vocabulary_size,
                     .first_step = position_.step,
                     .memory = training_memory(settings_),
                     .settings = settings_});
  const std::int64_t first_step = position_.step;
  double stepping = 0;
  if (position_.step == 0 && !stop_requested(request_.stop)) keep();
  if (!position_.evaluated && finish_step()) write_checkpoint();
  while (position_.evaluated && position_.step < settings_.steps &&
         !stop_requested(request_.stop)) {
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
                       .interrupted = position_.step < settings_.steps || !position_.evaluated};
  const auto trained =
      static_cast<double>((position_.step - first_step) * settings_.tokens_per_step());
  summary.tokens_per_second = stepping > 0 ? trained / stepping : 0;
  if (validation_ && !summary.interrupted) {
    // All of it may take long; everything is saved by then.
    summary.interrupted = !completes([&] { summary.validation = evaluate_on(/*batches=*/0); });
  }
  return summary;
}

}  // namespace

TrainSummary train(const TrainRequest& request) { return Run(request).train(); }

}  // namespace heed
