// heed train: trains a model on text, or on pairs of texts, with a live line and checkpoints.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "base/files.h"
#include "base/json.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/process_group.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/text.h"
#include "comm/group.h"
#include "engine/embedded_files.h"
#include "engine/loaded_model.h"
#include "engine/small_runs.h"
#include "engine/training_samples.h"
#include "formats/model_files.h"
#include "kernels/machine_peak.h"
#include "microscope/attention/induction.h"
#include "train/first_model.h"
#include "train/run_directory.h"
#include "train/settings.h"
#include "train/trainer.h"

namespace heed::cli {
namespace {

struct TrainOptions {
  std::vector<std::string> data;
  std::string validation;
  std::vector<std::string> pairs;
  std::vector<std::string> validation_pairs;
  std::string config;
  std::string from;
  std::string out;
  std::string tokenizer;
  std::string measure;
  std::vector<std::string> settings;
  std::optional<std::uint64_t> seed;
  std::string tensorboard;
  bool resume = false;
  bool force = false;
  bool json = false;
};

std::string duration(double seconds) {
  const std::int64_t whole = std::llround(seconds);
  if (whole >= 3600) return fmt::format("{}h {:02}m", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{}m {:02}s", whole / 60, whole % 60);
  return fmt::format("{}s", whole);
}

std::string described(const RunDescription& run) {
  const StackSpecification& model = run.settings.model;
  std::string layers = std::to_string(model.layers);
  std::string pairs;
  if (run.training_pairs > 0) {
    const std::int64_t encoder = run.settings.encoder_layers;
    layers = fmt::format("{} + {}", encoder > 0 ? encoder : model.layers, model.layers);
    pairs = fmt::format("{} pairs ({} for validation), ",
                        grouped(run.training_pairs + run.validation_pairs),
                        grouped(run.validation_pairs));
  }
  return fmt::format(
      "{} parameters, {} blocks × {}, {}{} tokens of text ({} for validation), vocabulary {}",
      grouped(run.parameters), layers, counted(model.heads(), "head"), pairs,
      grouped(run.training_tokens + run.validation_tokens), grouped(run.validation_tokens),
      grouped(run.vocabulary_size));
}

std::string processes_line(const RunDescription& run) {
  if (run.processes == 1) return "";
  const std::int64_t sharing = run.settings.sequence_parallel;
  return fmt::format(", in {} processes{}", run.processes,
                     sharing > 1 ? fmt::format(", {} to a sequence", sharing) : "");
}

// Shows the live line and the log lines.
class TrainReporter : public TrainObserver {
 public:
  void preparing(const Progress& progress) override { line_.update(progress); }

  void noticed(const std::string& sentence) override { line_.log("note: " + sentence); }

  void started(const RunDescription& run) override {
    steps_ = run.settings.steps;
    peak_ = kernels::measure_peak_flops();
    line_.log(described(run));
    const bool pairs = run.training_pairs > 0;
    processes_ = run.processes;
    line_.log(fmt::format(
        "{} of {}{}, products in {}{}{}", counted(steps_, "step"), pairs ? "up to " : "",
        counted(run.settings.tokens_per_step(), pairs ? "target token" : "token"),
        run.settings.precision == kernels::Precision::bf16 ? "bf16" : "f32", processes_line(run),
        run.first_step > 0 ? fmt::format(", resumed at step {}", grouped(run.first_step)) : ""));
    const auto bytes = [](std::int64_t count) { return short_bytes(static_cast<double>(count)); };
    line_.log(fmt::format("{} of memory{}: {} parameters, gradients and moments, {} activations{}",
                          bytes(run.memory.total()), run.processes > 1 ? " a process" : "",
                          bytes(run.memory.parameters + run.memory.gradients + run.memory.moments),
                          bytes(run.memory.activations),
                          run.settings.recompute ? " (recomputed)" : ""));
  }

  void stepped(const StepReport& report) override {
    std::string detail = fmt::format("loss {:.4f}", report.loss);
    if (validation_) detail += fmt::format("  val {:.4f}", *validation_);
    detail += fmt::format("  {} tok/s  {:.0f}% of the peak in f32",
                          grouped(static_cast<std::int64_t>(report.tokens_per_second)),
                          100 * report.flops_per_second / (peak_ * processes_));
    if (processes_ > 1) {
      detail += fmt::format("  {:.0f}% exchanging", 100 * report.communication);
    }
    line_.update({.what = "training", .done = report.step, .total = report.steps}, detail);
    last_loss_ = report.loss;
  }

  void evaluated(std::int64_t step, const Evaluation& evaluation, bool is_best) override {
    validation_ = evaluation.nats_per_token;
    const std::string loss = last_loss_ ? fmt::format("  loss {:.4f}", *last_loss_) : "";
    line_.log(fmt::format("step {:>6}{}  val {}{}", step, loss,
                          with_error(evaluation.nats_per_token, evaluation.standard_error, 4),
                          is_best ? "  best" : ""));
  }

  void measured(std::int64_t step, const OrderedJson& measured, bool is_best) override {
    std::string text;
    for (const auto& [name, value] : measured.items()) {
      text += "  " + name + " " +
              (value.is_number_float() ? fmt::format("{:.4g}", value.get<double>()) : value.dump());
    }
    line_.log(fmt::format("step {:>6}{}{}", step, text, is_best ? "  best" : ""));
  }

  void sampled(std::int64_t step, const std::string& text) override {
    std::string indented = fmt::format("step {:>6}  sample:\n  │ ", step);
    for (const char c : text) {
      indented += c;
      if (c == '\n') indented += "  │ ";
    }
    line_.log(indented);
  }

  void saving(const CheckpointWrite& write) override {
    std::string what = "saving " + short_bytes(static_cast<double>(write.bytes));
    if (write.expected_seconds) what += ", about " + duration(*write.expected_seconds);
    if (write.stopping) {
      line_.log(fmt::format("stopping: {} for step {}", what, grouped(write.step)));
    } else {
      line_.update({.what = what, .done = write.step, .total = steps_});
    }
  }

  void clear() { line_.clear(); }

 private:
  ProgressLine line_;
  std::int64_t steps_ = 0;
  double peak_ = 1;  // of this process
  int processes_ = 1;
  std::optional<double> last_loss_;  // of a step of this process
  std::optional<double> validation_;
};

// The heads are null where no score is significant; the scores are the largest in any case.
OrderedJson induction_scores(const Transformer& transformer) {
  const InductionMeasure measure = measure_induction(transformer, {.stop = interrupt_flag()});
  const auto name = [](const std::optional<HeadScore>& head) {
    return head ? OrderedJson(fmt::format("L{}H{}", head->layer, head->head)) : OrderedJson();
  };
  return {{"induction_head", name(measure.induction_head())},
          {"induction_score", json_number(measure.best_induction().score)},
          {"previous_head", name(measure.previous_head())},
          {"previous_score", json_number(measure.best_previous().score)},
          {"repeated_half_loss", json_number(measure.repeated_half_loss)}};
}

// What a run is without --config: minutes on two cores for a small text.
constexpr const char* default_config = "shakespeare-char-cpu";
constexpr const char* default_pair_config = "multi30k-en-de";

void apply_config(TrainSettings& settings, const std::string& config) {
  if (const SmallRun* const run = find_small_run(config)) {
    settings = run->settings;
    return;
  }
  if (!config.ends_with(".json")) {
    settings = train_preset(config);
    return;
  }
  apply_settings(settings, parse_json(read_text_file(config, 1 << 24), config), config);
}

void apply_overrides(TrainSettings& settings, const TrainOptions& options) {
  for (const std::string& setting : options.settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos) {
      fail_usage(fmt::format("--set takes name=value, not '{}'", setting));
    }
    set_setting(settings, setting.substr(0, equals), setting.substr(equals + 1));
  }
  if (!options.tokenizer.empty()) settings.tokenizer = options.tokenizer;
  if (options.seed) settings.seed = *options.seed;
  if (!options.measure.empty()) set_setting(settings, "measure", options.measure);
}

// The directory, or GGUF file, of a model to fine-tune: files are read, so the built-in one's name
// is refused.
std::filesystem::path fine_tuned_path(const std::string& from) {
  if (is_embedded_name(from)) {
    fail_usage(
        fmt::format("--from takes a model directory; write the built-in model to one with: heed "
                    "convert {} --dtype f32 --out DIR",
                    from));
  }
  std::filesystem::path path = model_path(from);
  require(std::filesystem::exists(path), ErrorCode::not_found,
          "there is no model '{}' to fine-tune", from);
  return path;
}

void require_fitting_data(const TrainSettings& settings, const TrainOptions& options) {
  const bool is_pairs = settings.task == Task::pairs;
  if (!options.pairs.empty() && !options.data.empty()) {
    fail_usage("--pairs and --data cannot be given together: a run trains on pairs or on text");
  }
  if (!options.pairs.empty() && !is_pairs) {
    fail_usage("--pairs trains translators: add --set task=pairs, or use --config " +
               std::string(default_pair_config));
  }
  if (!options.data.empty() && is_pairs) {
    fail_usage("this run trains on pairs of texts: give them with --pairs, not --data");
  }
  if (!options.validation_pairs.empty() && !is_pairs) {
    fail_usage("--valid-pairs belongs to --pairs; for text use --validation");
  }
  if (!options.validation.empty() && is_pairs) {
    fail_usage("--validation belongs to --data; for pairs use --valid-pairs");
  }
}

// Settings come from, the later over the earlier: a resumed run's own record, or a preset or file
// and, when fine-tuning, the model's shape; then --set.
TrainRequest make_request(const TrainOptions& options) {
  TrainRequest request;
  request.out = options.out;
  request.device = default_device();
  const std::vector<std::string>& data = options.pairs.empty() ? options.data : options.pairs;
  request.data.assign(data.begin(), data.end());
  request.validation = options.validation;
  if (!options.validation_pairs.empty()) {
    request.validation = options.validation_pairs.front();
    if (options.validation_pairs.size() > 1) {
      request.validation_target = options.validation_pairs.back();
    }
  }
  request.from = options.from;
  request.replaces_model = options.force;
  request.tensorboard = options.tensorboard;
  if (options.resume) {
    request.start = RunStart::resume;
    const RunRecord record = RunDirectory(options.out).read_record();
    request.settings = record.settings;
    if (request.data.empty()) request.data.assign(record.data.begin(), record.data.end());
    if (request.validation.empty()) {
      request.validation = record.validation;
      request.validation_target = record.validation_target;
    }
    if (request.from.empty()) request.from = record.from;
  }
  if (options.config.empty() && options.from.empty() && !options.resume) {
    apply_config(request.settings, options.pairs.empty() ? default_config : default_pair_config);
  } else if (!options.config.empty()) {
    const StackSpecification recorded = request.settings.model;
    apply_config(request.settings, options.config);
    // What the tokenizer, or the model that is fine-tuned, decided when the run began is no setting
    // of the preset.
    if (options.resume && !request.from.empty()) request.settings.model = recorded;
    if (options.resume) {
      request.settings.model.vocabulary_size = recorded.vocabulary_size;
      request.settings.model.end_of_text = recorded.end_of_text;
    }
  }
  if (!options.from.empty() && !options.resume) {
    request.from = fine_tuned_path(options.from);
    set_fine_tuned_model(request.from, request.settings);
  }
  apply_overrides(request.settings, options);
  require_fitting_data(request.settings, options);
  const bool has_stories = find_small_run(options.config) != nullptr && !options.resume;
  if (request.data.empty() && !has_stories) {
    fail_usage("training needs text: --data FILE… or --pairs FILE…, or a small run: --config " +
               small_runs().front().name);
  }
  return request;
}

void print_summary(const TrainSummary& summary, const TrainOptions& options) {
  if (options.json) {
    OrderedJson json;
    json["steps"] = summary.steps;
    json["train_loss"] = json_number(summary.train_loss);
    if (summary.validation) {
      json["val_loss"] = json_number(summary.validation->nats_per_token);
      json["val_standard_error"] = json_number(summary.validation->standard_error.value_or(NAN));
    } else {
      json["val_loss"] = nullptr;
    }
    if (summary.measured) json["measured"] = *summary.measured;
    if (summary.averaged > 0) json["averaged"] = summary.averaged;
    json["tokens_per_s"] = json_number(summary.tokens_per_second);
    json["seconds"] = json_number(summary.seconds);
    json["checkpoint"] =
        summary.checkpoint.empty() ? OrderedJson() : OrderedJson(summary.checkpoint.string());
    json["interrupted"] = summary.interrupted;
    print_json(json);
    return;
  }
  if (std::isnan(summary.train_loss)) {
    print(fmt::format("no new step; {} in {} before\n", counted(summary.steps, "step"),
                      duration(summary.seconds)));
  } else {
    print(fmt::format("{} in {}, {} tokens/s, training loss {:.4f}\n",
                      counted(summary.steps, "step"), duration(summary.seconds),
                      grouped(static_cast<std::int64_t>(summary.tokens_per_second)),
                      summary.train_loss));
  }
  if (summary.validation) {
    const Evaluation& validation = *summary.validation;
    print(fmt::format("validation loss {} over {}\n",
                      with_error(validation.nats_per_token, validation.standard_error, 4),
                      counted(validation.tokens, "token")));
  }
  if (summary.measured && summary.measured->contains("bleu")) {
    print(fmt::format("BLEU {:.2f} on the validation pairs\n",
                      (*summary.measured)["bleu"].get<double>()));
  }
  if (summary.averaged > 0) {
    print(fmt::format("the result is the mean of the last {}\n",
                      counted(summary.averaged, "evaluation")));
  }
  if (!summary.checkpoint.empty()) {
    print(fmt::format("saved in {}\n", summary.checkpoint.string()));
  }
}

void run_train(const TrainOptions& options, Group& group) {
  TrainReporter reporter;
  TrainRequest request;
  // A small run without data is trained on its stories, whose entropy is known.
  std::optional<RunText> stories;
  agreed(group, [&] {
    request = make_request(options);
    if (const SmallRun* const small = find_small_run(options.config);
        small != nullptr && request.data.empty()) {
      require(group.is_alone(), ErrorCode::unsupported,
              "several processes need a text (--data): the stories of '{}' are written for one",
              options.config);
      stories.emplace(options.out);
      request.data = {stories->file()};
      request.entropy = write_stories(*small, stories->file(), interrupt_flag());
    }
  });
  request.group = &group;
  request.observer = &reporter;
  // Where all processes run the model together, none of them leaves in the middle.
  const bool runs_together = !group.is_alone() && request.settings.shard == 3;
  const StopFlag stop = runs_together ? nullptr : interrupt_flag();
  request.sample = [&request, stop](const Transformer& transformer, const Tokenizer& tokenizer) {
    return run_sample(transformer, tokenizer, request.settings, stop);
  };
  if (request.settings.measure == Measure::induction) {
    request.measure = [](const Transformer& transformer, const Tokenizer&) {
      return induction_scores(transformer);
    };
  }
  if (request.settings.measure == Measure::bleu) {
    request.translate = [stop](const Transformer& model, const TranslationTokenizers& tokenizers,
                               std::span<const std::string> sources,
                               const TrainSettings& settings) {
      return translate_sources(model, tokenizers, sources, settings, stop);
    };
  }
  request.stop = interrupt_flag();
  const TrainSummary summary = train(request);
  reporter.clear();
  if (!group.is_first()) {
    if (summary.interrupted) throw AgreedError(ErrorCode::interrupted, "stopped", Speaker::another);
    return;
  }
  print_summary(summary, options);
  if (summary.interrupted) {
    flush_output();
    const bool is_saved = !summary.checkpoint.empty();
    throw AgreedError(
        ErrorCode::interrupted,
        fmt::format(
            "{}stopped after step {} of {}; {}. Resume with: heed train --out '{}' --resume",
            summary.stopped_by ? fmt::format("process {} of {} was asked to stop: ",
                                             *summary.stopped_by, group.size())
                               : "",
            summary.steps, request.settings.steps,
            is_saved ? "everything is saved" : "there was nothing to save", options.out),
        Speaker::this_member);
  }
}

std::string setting_list() {
  std::string list = "Settings for --set and JSON files, with their defaults in a JSON file:\n";
  std::string line = " ";
  const OrderedJson defaults = settings_to_json({});
  for (const auto& [name, value] : defaults.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    const std::string setting = name + "=" + text;
    if (line.size() + setting.size() > 76) {
      list += line + "\n";
      line = " ";
    }
    line += " " + setting;
  }
  return list + line;
}

}  // namespace

void add_train_command(Command app) {
  Command command = add_command(app, "train", "Train a model on text or pairs of texts");
  auto options = std::make_shared<TrainOptions>();
  command->add_option("--data", options->data, "Text files to train on")
      ->expected(1, -1)
      ->type_name("FILE");
  command
      ->add_option("--validation", options->validation,
                   "Text file to evaluate on [the end of the data]")
      ->type_name("FILE");
  command
      ->add_option("--pairs", options->pairs,
                   "Source and target text to train a translator on, line by line, or one .tsv")
      ->expected(1, 2)
      ->type_name("FILE");
  command
      ->add_option("--valid-pairs", options->validation_pairs,
                   "Pairs to evaluate on [the end of --pairs]")
      ->expected(1, 2)
      ->type_name("FILE");
  command->add_option("-o,--out", options->out, "Run directory")->required()->type_name("DIR");
  command
      ->add_option(
          "--config", options->config,
          fmt::format("Preset ({} needs no --data; gpt2, starter, …) or JSON file of settings "
                      "[{}; with --pairs: {}]",
                      small_runs().front().name, default_config, default_pair_config))
      ->type_name("NAME|FILE");
  command->add_option("--from", options->from, "Model directory to fine-tune")->type_name("DIR");
  command
      ->add_option("--tokenizer", options->tokenizer,
                   "char, bpe (both learned from the data) or a tokenizer's path [the config's]")
      ->type_name("NAME|DIR");
  command->add_option("--set", options->settings, "Override a setting, as name=value; repeatable")
      ->type_name("SETTING")
      ->expected(1)
      ->take_all();
  command
      ->add_option("-s,--seed", options->seed,
                   "Seed of weights, data order and dropout [the config's]")
      ->check(at_least(0));
  command
      ->add_option("--measure", options->measure,
                   "Also measure this at every evaluation: induction, bleu [the config's]")
      ->type_name("WHAT")
      ->check(one_of({"induction", "bleu"}));
  command->add_flag("--resume", options->resume,
                    "Resume the run in --out, bit for bit; --set steps=N extends it");
  command->add_flag("--force", options->force,
                    "Train in --out even if it holds a model, which is lost");
  command
      ->add_option("--tensorboard", options->tensorboard,
                   "Also write the metrics as TensorBoard's event files [none]")
      ->type_name("DIR");
  add_json_option(*command, options->json);
  command->footer(
      setting_list() +
      "\n\nSeveral processes: mpirun -n N heed train … (srun likewise). One that is silent "
      "for\nHEED_SILENCE_LIMIT seconds [20; 0: no limit] is taken for one that hangs, and "
      "ends all.");
  command->callback(
      [options] { in_process_group([&](Group& group) { run_train(*options, group); }); });
}

}  // namespace heed::cli
