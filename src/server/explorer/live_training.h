// A training run in the server itself, started, paused and stopped by its page. It runs beside the
// computing thread and gives way to it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "engine/small_runs.h"
#include "server/background.h"
#include "server/explorer/options.h"
#include "server/explorer/runs.h"
#include "train/trainer.h"

namespace heed::server {

class LiveTraining {
 public:
  // All are borrowed.
  LiveTraining(Compute& compute, Runs& runs, const ExplorerOptions& options);
  ~LiveTraining();  // stops the run, which saves
  LiveTraining(const LiveTraining&) = delete;
  LiveTraining& operator=(const LiveTraining&) = delete;

  // Its state, what can be trained, and within which limits.
  OrderedJson describe() const;

  // Starts a run as the request asks (see openapi.json) and waits until it has its name, some
  // seconds at most. Throws HttpError{403} where training is not allowed, Error{conflict} while a
  // run is not finished, FieldError for a wrong field, and what train() throws about text or
  // settings.
  void start(const Json& request);

  // Throw Error{conflict} when no run can be paused, resumed, stopped or changed.
  void pause();
  void resume();
  void stop();
  void set_learning_rate_factor(double factor);

 private:
  enum class State { none, preparing, running, paused, stopping, finished, stopped, failed };
  class Observer;

  std::string why_not() const;  // empty: clients may train
  static const char* state_name(State state);
  static bool is_active(State state);
  void require_active(const char* what) const;
  std::filesystem::path claim_directory() const;
  // A piece of the work: the run's text and model, a step, or what comes after the last one.
  Background::Next work();
  void prepare();
  void end(State reached, std::optional<Error> failure);
  bool waits_for_resume();

  Runs& runs_;
  const ExplorerOptions& options_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::none;
  std::int64_t attempt_ = 0;  // counts the starts
  bool has_begun_ = false;    // the run: it has its first checkpoint
  std::string run_;           // its name; empty until it is known
  std::string preset_;        // whose stories it reads; empty for a text
  std::optional<Error> failure_;
  std::optional<Progress> preparing_;
  std::int64_t step_ = 0;
  std::int64_t steps_ = 0;
  double learning_rate_ = 0;  // of the last step
  std::atomic<double> learning_rate_factor_ = 1;
  std::atomic<bool> stop_ = false;
  // Of the work alone, once it is started.
  TrainRequest request_;
  const SmallRun* stories_ = nullptr;
  std::string text_;  // empty: the stories
  std::unique_ptr<Observer> observer_;
  std::unique_ptr<TrainingRun> training_;
  Background background_;
};

}  // namespace heed::server
