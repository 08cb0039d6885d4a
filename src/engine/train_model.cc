// Training through the public facade.
#include <cmath>
#include <optional>

#include <functional>
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/progress.h"
#include "engine/hooks.h"
#include "engine/point_keeper.h"
#include "engine/small_runs.h"
#include "engine/training_samples.h"
#include "formats/model_files.h"
#include "heed/train.h"
#include "microscope/traces/point_names.h"
#include "train/first_model.h"
#include "train/run_directory.h"
#include "train/settings.h"
#include "train/trainer.h"

namespace heed {
namespace {

constexpr const char* preset_without_a_name = "shakespeare-char-cpu";
constexpr const char* pair_preset_without_a_name = "multi30k-en-de";
constexpr std::size_t max_settings_file = 1 << 24;  // bytes

// Keeps the losses, and passes them on.
class FacadeObserver : public TrainObserver {
 public:
  FacadeObserver(const TrainingOptions& options, TrainingResult& result)
      : options_(options), result_(result) {}

  void stepped(const StepReport& report) override {
    now_ = {.step = report.step,
            .steps = report.steps,
            .loss = report.loss,
            .learning_rate = report.learning_rate,
            .tokens_per_second = report.tokens_per_second,
            .seconds_left = report.seconds_left};
    result_.losses.push_back({report.step, report.loss});
    tell();
  }

  void evaluated(std::int64_t step, const Evaluation& evaluation, bool /*is_best*/) override {
    result_.validation.push_back({step, evaluation.nats_per_token});
    if (now_.step != step) return;  // of the untrained model, or of a resumed run's last step
    now_.validation_loss = evaluation.nats_per_token;
    tell();
  }

  void sampled(std::int64_t step, const std::string& text) override {
    if (options_.sampled) options_.sampled(step, text);
  }

 private:
  void tell() const {
    if (options_.progress) options_.progress(now_);
  }

  const TrainingOptions& options_;
  TrainingResult& result_;
  TrainingProgress now_;
};

// Passes over pairs have sequences of different lengths one below the other.
void require_rows(const Architecture& architecture, const std::vector<Hook>& hooks) {
  for (const Hook& hook : hooks) {
    for (const Point& point : points_named(hook.where, architecture)) {
      require(!is_plane(point.kind) && point.kind != PointKind::embedding &&
                  point.kind != PointKind::position,
              ErrorCode::unsupported,
              "'{}' cannot be hooked while a translator is trained: its batches have no scores, "
              "patterns and embeddings by themselves",
              point_name(point));
    }
  }
}

// Hooks in the passes of training steps.
class TrainingHooks {
 public:
  explicit TrainingHooks(const TrainingOptions& options)
      : options_(options), stop_([&options] {
          require(!stop_requested(options.stop), ErrorCode::interrupted, "stopped in a pass");
        }) {}
  TrainingHooks(const TrainingHooks&) = delete;
  TrainingHooks& operator=(const TrainingHooks&) = delete;

  bool empty() const { return options_.hooks.empty() && options_.gradient_hooks.empty(); }
  // Throws Error{invalid_argument} for unknown points, and Error{unsupported} for those that passes
  // over pairs do not show.
  PassHooks attach(const Architecture& architecture) {
    if (architecture.is_encoder_decoder()) {
      require_rows(architecture, options_.hooks);
      require_rows(architecture, options_.gradient_hooks);
    }
    editor_.emplace(architecture, options_.hooks, options_.gradient_hooks);
    editor_->refuse_unseen_changes();
    probe_.emplace(&*editor_, stop_);
    return {.editor = &*editor_, .probe = &*probe_};
  }

 private:
  const TrainingOptions& options_;
  std::function<void()> stop_;
  std::optional<HookEditor> editor_;
  std::optional<HookProbe> probe_;
};

void apply_preset(TrainSettings& settings, const std::string& preset) {
  if (const SmallRun* const run = find_small_run(preset)) {
    settings = run->settings;
  } else if (preset.ends_with(".json")) {
    apply_settings(settings, parse_json(read_text_file(preset, max_settings_file), preset), preset);
  } else {
    settings = train_preset(preset);
  }
}

// What a resumed run said of itself, as far as the options do not.
void recall_run(const TrainingOptions& options, TrainRequest& request) {
  require(options.preset.empty() && options.from.empty(), ErrorCode::invalid_argument,
          "a resumed run has its settings and its model: give neither `preset` nor `from`");
  const RunRecord record = RunDirectory(options.out).read_record();
  request.start = RunStart::resume;
  request.settings = record.settings;
  request.from = record.from;
  if (request.data.empty()) request.data.assign(record.data.begin(), record.data.end());
  if (request.validation.empty()) {
    request.validation = record.validation;
    request.validation_target = record.validation_target;
  }
}

void begin_run(const TrainingOptions& options, TrainRequest& request) {
  if (options.from.empty() || !options.preset.empty()) {
    const char* const usual =
        options.pairs.empty() ? preset_without_a_name : pair_preset_without_a_name;
    apply_preset(request.settings, options.preset.empty() ? usual : options.preset);
  }
  if (options.from.empty()) return;
  require(std::filesystem::exists(options.from), ErrorCode::not_found,
          "there is no model '{}' to fine-tune", options.from.string());
  request.from = options.from;
  set_fine_tuned_model(options.from, request.settings);
}

TrainRequest request_of(const TrainingOptions& options) {
  require(!options.out.empty(), ErrorCode::invalid_argument,
          "training needs `out`, the directory of the run");
  require(options.files.empty() || options.text.empty(), ErrorCode::invalid_argument,
          "give `files` or `text` to train on, not both");
  require(options.pairs.empty() || (options.files.empty() && options.text.empty()),
          ErrorCode::invalid_argument, "give `pairs` or a text to train on, not both");
  require(options.validation_pairs.size() <= 2, ErrorCode::invalid_argument,
          "`validation_pairs` are two files or one, not {}", options.validation_pairs.size());
  const auto pair_file = [&](std::size_t index) {
    return index < options.validation_pairs.size() ? options.validation_pairs[index]
                                                   : std::filesystem::path();
  };
  TrainRequest request{
      .data = options.pairs.empty() ? options.files : options.pairs,
      .validation = options.validation_pairs.empty() ? options.validation : pair_file(0),
      .validation_target = pair_file(1),
      .out = options.out,
      .learning_rate_factor = options.learning_rate_factor,
      .stop = options.stop,
      .device = default_device()};
  if (options.resume) {
    require(options.text.empty(), ErrorCode::invalid_argument,
            "a resumed run has its text: give no `text`");
    recall_run(options, request);
  } else {
    begin_run(options, request);
  }
  for (const auto& [name, value] : options.settings) set_setting(request.settings, name, value);
  require(!request.data.empty() || !options.text.empty(), ErrorCode::invalid_argument,
          "training needs text: `files`, `text` or `pairs`");
  const bool has_pairs = request.settings.task == Task::pairs;
  require(options.pairs.empty() || has_pairs, ErrorCode::invalid_argument,
          "`pairs` train translators: use the preset {}, or set task to pairs",
          pair_preset_without_a_name);
  require(!has_pairs || (options.files.empty() && options.text.empty()),
          ErrorCode::invalid_argument, "this run trains on `pairs`, not on a text");
  require(request.settings.measure != Measure::induction, ErrorCode::unsupported,
          "only `heed train` measures a model while it trains: set measure to none");
  return request;
}

}  // namespace

TrainingResult train_model(const TrainingOptions& options) {
  TrainingResult result;
  FacadeObserver observer(options, result);
  TrainRequest request = request_of(options);
  std::optional<RunText> text;
  if (!options.text.empty()) {
    text.emplace(options.out);
    write_text_file(text->file(), options.text);
    request.data = {text->file()};
  }
  request.observer = &observer;
  TrainingHooks hooks(options);
  if (!hooks.empty()) {
    request.hooks = [&hooks](const Architecture& architecture) {
      return hooks.attach(architecture);
    };
  }
  if (options.sampled) {
    request.sample = [&request](const Transformer& transformer, const Tokenizer& tokenizer) {
      return run_sample(transformer, tokenizer, request.settings, request.stop);
    };
  }
  request.translate = [&request](const Transformer& model, const TranslationTokenizers& tokenizers,
                                 std::span<const std::string> sources,
                                 const TrainSettings& settings) {
    return translate_sources(model, tokenizers, sources, settings, request.stop);
  };
  const TrainSummary summary = train(request);
  if (summary.measured && summary.measured->contains("bleu")) {
    result.bleu = (*summary.measured)["bleu"].get<double>();
  }
  result.steps = summary.steps;
  if (summary.validation) {
    result.validation_loss = summary.validation->nats_per_token;
    result.validation_error = summary.validation->standard_error;
  }
  result.seconds = summary.seconds;
  result.checkpoint = summary.checkpoint;
  result.interrupted = summary.interrupted;
  return result;
}

}  // namespace heed
