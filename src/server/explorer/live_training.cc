#include "server/explorer/live_training.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/files.h"
#include "engine/training_samples.h"
#include "model/parameter_count.h"
#include "server/exchange.h"
#include "server/explorer/shown_files.h"
#include "server/fields.h"

namespace heed::server {
namespace {

constexpr std::size_t max_text_bytes = std::size_t{1} << 20;
constexpr std::int64_t kept_checkpoints = 12;
constexpr std::int64_t max_live_runs = 1000;

// Of a whole run: some hours on two cores.
constexpr double max_operations = 1e15;

struct Limit {
  const char* name;
  double least;
  double most;
  bool is_whole = true;
};

// Of the settings that a request may change, one by one.
constexpr std::array<Limit, 7> limits = {{{"layers", 1, 8},
                                          {"heads", 1, 8},
                                          {"width", 16, 256},
                                          {"context", 16, 512},
                                          {"steps", 10, 20'000},
                                          {"batch_size", 1, 64},
                                          {"learning_rate", 1e-6, 0.1, false}}};

OrderedJson limits_json() {
  OrderedJson json;
  for (const Limit& limit : limits) {
    json[limit.name] = limit.is_whole ? OrderedJson{static_cast<std::int64_t>(limit.least),
                                                    static_cast<std::int64_t>(limit.most)}
                                      : OrderedJson{limit.least, limit.most};
  }
  json["text_bytes"] = max_text_bytes;
  return json;
}

OrderedJson preset_json(const SmallRun& run) {
  const TrainSettings& settings = run.settings;
  return {{"name", run.name},
          {"title", run.title},
          {"note", run.note},
          {"layers", settings.model.layers},
          {"heads", settings.model.heads()},
          {"width", settings.model.channels},
          {"context", settings.model.context},
          {"steps", settings.steps},
          {"batch_size", settings.batch_size},
          {"learning_rate", json_number(settings.learning_rate)}};
}

const SmallRun& chosen_preset(const Fields& fields) {
  const auto name = fields.string("preset");
  if (!name) return small_runs().front();
  const SmallRun* const run = find_small_run(*name);
  require(run != nullptr, ErrorCode::invalid_argument, "there is no preset '{}': see /api/training",
          name->substr(0, 40));
  return *run;
}

// Evaluations, checkpoints and samples at even distances over the run.
void space_out(TrainSettings& settings) {
  settings.keep_every = std::max<std::int64_t>(1, settings.steps / kept_checkpoints);
  settings.evaluate_every = std::max<std::int64_t>(1, settings.steps / (2 * kept_checkpoints));
  settings.sample_every = settings.keep_every;
  settings.checkpoint_every = settings.steps;
  settings.warmup_steps = std::min(settings.warmup_steps, settings.steps / 5);
}

void change_settings(TrainSettings& settings, const Fields& wanted) {
  wanted.expect_only(
      {"layers", "heads", "width", "context", "steps", "batch_size", "learning_rate", "seed"});
  const auto whole = [&](const char* name, std::int64_t fallback) {
    const auto limit = std::ranges::find(limits, std::string_view(name), &Limit::name);
    return wanted
        .integer(name, static_cast<std::int64_t>(limit->least),
                 static_cast<std::int64_t>(limit->most))
        .value_or(fallback);
  };
  const StackSpecification before = settings.model;
  settings.model = make_gpt_config(whole("layers", before.layers), whole("heads", before.heads()),
                                   whole("width", before.channels),
                                   whole("context", before.context), before.vocabulary_size);
  settings.steps = whole("steps", settings.steps);
  settings.batch_size = whole("batch_size", settings.batch_size);
  settings.learning_rate = wanted.number("learning_rate", limits.back().least, limits.back().most)
                               .value_or(settings.learning_rate);
  settings.min_learning_rate = std::min(settings.min_learning_rate, settings.learning_rate);
  settings.seed = static_cast<std::uint64_t>(
      wanted.integer("seed", 0).value_or(static_cast<std::int64_t>(settings.seed)));
}

TrainSettings wanted_settings(const Fields& fields, const SmallRun& preset, bool has_text) {
  TrainSettings settings = preset.settings;
  if (fields.has("settings")) change_settings(settings, fields.required_object("settings"));
  const std::string tokenizer = fields.string("tokenizer").value_or(has_text ? "char" : "bpe");
  require(tokenizer == "char" || tokenizer == "bpe", ErrorCode::invalid_argument,
          "tokenizer must be char or bpe, not '{}'", tokenizer.substr(0, 40));
  require(has_text || tokenizer == "bpe", ErrorCode::invalid_argument,
          "the stories have their tokenizer; choose another with a \"text\"");
  settings.tokenizer = tokenizer;
  if (has_text) {
    settings.windows = Windows::stream;
    settings.validation_fraction = 0.1;
  }
  space_out(settings);
  settings.validate();
  const double operations = model_cost(settings.model).train_flops_per_token *
                            static_cast<double>(settings.tokens_per_step() * settings.steps);
  require(
      operations <= max_operations, ErrorCode::invalid_argument,
      "the run takes {:.1e} operations; at most {:.0e} in the page: choose fewer layers or steps, "
      "or a smaller width, context or batch_size",
      operations, max_operations);
  return settings;
}

}  // namespace

// Passes on what happens.
class LiveTraining::Observer final : public TrainObserver {
 public:
  Observer(LiveTraining& training, const std::filesystem::path& directory)
      : training_(training), directory_(directory) {}

  void preparing(const Progress& progress) override {
    const std::lock_guard lock(training_.mutex_);
    training_.preparing_ = progress;
  }

  void started(const RunDescription& run) override {
    std::string name = training_.runs_.add(directory_, RunOrigin::live);
    const std::lock_guard lock(training_.mutex_);
    training_.run_ = std::move(name);
    training_.has_begun_ = true;
    training_.steps_ = run.settings.steps;
    training_.preparing_.reset();
    if (training_.state_ == State::preparing) training_.state_ = State::running;
    training_.changed_.notify_all();
  }

  void stepped(const StepReport& report) override {
    const std::lock_guard lock(training_.mutex_);
    training_.step_ = report.step;
    training_.learning_rate_ = report.learning_rate;
  }

 private:
  LiveTraining& training_;
  const std::filesystem::path& directory_;
};

LiveTraining::LiveTraining(Compute& compute, Runs& runs, const ExplorerOptions& options)
    : runs_(runs), options_(options), background_(compute) {}

LiveTraining::~LiveTraining() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    if (is_active(state_)) state_ = State::stopping;
  }
  background_.wake();
  background_.join();
}

const char* LiveTraining::state_name(State state) {
  constexpr std::array names = {"none",     "preparing", "running", "paused",
                                "stopping", "finished",  "stopped", "failed"};
  return names[static_cast<std::size_t>(state)];
}

bool LiveTraining::is_active(State state) {
  return state == State::preparing || state == State::running || state == State::paused ||
         state == State::stopping;
}

std::string LiveTraining::why_not() const {
  if (!options_.why_no_training.empty()) return options_.why_no_training;
  return options_.live_runs.empty() ? "this server has no directory for runs" : "";
}

OrderedJson LiveTraining::describe() const {
  OrderedJson presets = OrderedJson::array();
  for (const SmallRun& run : small_runs()) presets.push_back(preset_json(run));
  const std::string why = why_not();
  const std::lock_guard lock(mutex_);
  OrderedJson preparing;
  if (preparing_) {
    preparing = {
        {"what", preparing_->what}, {"done", preparing_->done}, {"total", preparing_->total}};
  }
  return {{"allowed", why.empty()},
          {"why_not", why.empty() ? OrderedJson(nullptr) : OrderedJson(why)},
          {"state", state_name(state_)},
          {"run", run_.empty() ? OrderedJson(nullptr) : OrderedJson(run_)},
          {"preset", preset_.empty() ? OrderedJson(nullptr) : OrderedJson(preset_)},
          {"step", step_},
          {"steps", steps_},
          {"learning_rate", json_number(learning_rate_)},
          {"learning_rate_factor", json_number(learning_rate_factor_.load())},
          {"preparing", std::move(preparing)},
          {"error", failure_ ? OrderedJson(failure_->what()) : OrderedJson(nullptr)},
          {"presets", std::move(presets)},
          {"limits", limits_json()}};
}

// Makes live-1, live-2, …: the first that is not there; it is this server's alone.
std::filesystem::path LiveTraining::claim_directory() const {
  std::error_code error;
  std::filesystem::create_directories(options_.live_runs, error);
  for (std::int64_t number = 1; !error && number <= max_live_runs; ++number) {
    std::filesystem::path directory = options_.live_runs / fmt::format("live-{}", number);
    if (std::filesystem::create_directory(directory, error)) return directory;
  }
  require(!error, ErrorCode::input_output, "cannot make a directory for the run: {}",
          error.message());
  fail(ErrorCode::conflict,
       "there are {} runs already: remove some from the directory of live runs", max_live_runs);
}

void LiveTraining::start(const Json& body) {
  const Fields fields(body);
  fields.expect_only({"preset", "text", "tokenizer", "settings"});
  const SmallRun& preset = chosen_preset(fields);
  const std::string text = fields.string("text").value_or("");
  require(!fields.has("text") || !text.empty(), ErrorCode::invalid_argument, "the text is empty");
  require(text.size() <= max_text_bytes, ErrorCode::invalid_argument,
          "the text has {} bytes; a run in the page takes {} at most: train on it with heed train",
          text.size(), max_text_bytes);
  TrainRequest request;
  request.device = default_device();
  request.settings = wanted_settings(fields, preset, !text.empty());
  if (const std::string why = why_not(); !why.empty()) throw HttpError(403, why);

  std::unique_lock lock(mutex_);
  require(!is_active(state_), ErrorCode::conflict,
          "a run is being trained{}: stop it, or wait for its end",
          run_.empty() ? "" : " (" + run_ + ")");
  background_.join();  // it has ended
  request.out = claim_directory();
  const std::int64_t attempt = ++attempt_;
  has_begun_ = false;
  run_.clear();
  preset_ = text.empty() ? preset.name : "";
  failure_.reset();
  preparing_.reset();
  step_ = 0;
  steps_ = request.settings.steps;
  learning_rate_ = 0;
  learning_rate_factor_ = 1;
  stop_ = false;
  request_ = std::move(request);
  stories_ = &preset;
  text_ = text;
  try {
    background_.start([this] { return work(); });
  } catch (const std::exception&) {
    std::error_code ignored;
    std::filesystem::remove_all(request_.out, ignored);
    throw;
  }
  state_ = State::preparing;  // the work waits for the lock before it reports anything
  background_.wait_for(lock, changed_,
                       [&] { return attempt_ != attempt || state_ != State::preparing; });
  if (attempt_ == attempt && state_ == State::failed && !has_begun_) throw *failure_;
}

void LiveTraining::prepare() {
  observer_ = std::make_unique<Observer>(*this, request_.out);
  const std::filesystem::path data = request_.out / "text.txt";
  if (text_.empty()) {
    request_.entropy = write_stories(*stories_, data, &stop_);
  } else {
    write_text_file(data, text_);
  }
  request_.data = {data};
  request_.cache = request_.out / "tokens";
  request_.observer = observer_.get();
  request_.stop = &stop_;
  request_.learning_rate_factor = &learning_rate_factor_;
  request_.sample = [this](const Transformer& transformer, const Tokenizer& tokenizer) {
    return run_sample(transformer, tokenizer, request_.settings, &stop_);
  };
  training_ = std::make_unique<TrainingRun>(request_);
}

bool LiveTraining::waits_for_resume() {
  const std::lock_guard lock(mutex_);
  return state_ == State::paused;
}

Background::Next LiveTraining::work() {
  if (waits_for_resume()) return Background::Next::wake;
  std::optional<Error> failure;
  try {
    if (training_ == nullptr) {
      prepare();
      return Background::Next::piece;
    }
    if (training_->step()) return Background::Next::piece;
    end(training_->finish().interrupted ? State::stopped : State::finished, {});
    return Background::Next::end;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::interrupted) {
      failure.emplace(error.code(), without_directory(error.what(), request_.out));
    }
  } catch (const std::exception& error) {
    failure.emplace(ErrorCode::input_output, without_directory(error.what(), request_.out));
  }
  end(failure ? State::failed : State::stopped, std::move(failure));
  return Background::Next::end;
}

void LiveTraining::end(State reached, std::optional<Error> failure) {
  training_ = nullptr;
  observer_ = nullptr;
  std::error_code ignored;
  std::filesystem::remove_all(request_.out / "tokens", ignored);
  const std::lock_guard lock(mutex_);
  if (!has_begun_) std::filesystem::remove_all(request_.out, ignored);
  state_ = reached;
  failure_ = std::move(failure);
  preparing_.reset();
  changed_.notify_all();
}

void LiveTraining::require_active(const char* what) const {
  require(is_active(state_) && state_ != State::stopping, ErrorCode::conflict,
          "no run is being trained that could be {}", what);
}

void LiveTraining::pause() {
  const std::lock_guard lock(mutex_);
  require_active("paused");
  require(state_ != State::preparing, ErrorCode::conflict, "the run has not begun its first step");
  state_ = State::paused;
}

void LiveTraining::resume() {
  const std::lock_guard lock(mutex_);
  require_active("resumed");
  if (state_ == State::paused) state_ = State::running;
  background_.wake();
}

void LiveTraining::stop() {
  const std::lock_guard lock(mutex_);
  require_active("stopped");
  stop_ = true;
  state_ = State::stopping;
  background_.wake();
}

void LiveTraining::set_learning_rate_factor(double factor) {
  const std::lock_guard lock(mutex_);
  require_active("changed");
  learning_rate_factor_ = factor;
}

}  // namespace heed::server
