#include "server/explorer/runs.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>

#include "base/directory_lock.h"
#include "base/error.h"
#include "base/files.h"
#include "model/gpt_files.h"
#include "model/parameter_count.h"
#include "server/explorer/metrics_file.h"
#include "server/explorer/shown_files.h"
#include "train/run_directory.h"

namespace heed::server {
namespace {

namespace fs = std::filesystem;

// Without locks, a run that wrote within this time counts as running.
constexpr std::chrono::minutes live_time{2};
constexpr int most_checkpoint_entries = 100'000;

// A checkpoint's directory is named by its step: "00000250".
std::optional<std::int64_t> step_of(const fs::path& directory) {
  const std::string name = directory.filename().string();
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc{} || end != name.data() + name.size() || step < 0) return std::nullopt;
  std::error_code failure;
  return fs::exists(directory / config_file_name, failure) ? std::optional(step) : std::nullopt;
}

// "bpe" of "bpe" and of "/elsewhere/bpe/": clients do not see where files lie.
std::string last_folder(const fs::path& path) {
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

bool wrote_lately(const fs::path& file) {
  std::error_code error;
  const auto written = fs::last_write_time(file, error);
  return !error && fs::file_time_type::clock::now() - written < live_time;
}

}  // namespace

Runs::Runs(const std::vector<fs::path>& directories) {
  for (const fs::path& given : directories) {
    require(RunDirectory(given).holds_a_run(), ErrorCode::not_found,
            "there is no training run in '{}': it has no run.json", given.string());
    const fs::path directory = fs::canonical(given);
    std::string name = directory.filename().string();
    const std::vector<std::string> taken = names();
    for (int number = 2; std::ranges::find(taken, name) != taken.end(); ++number) {
      name = fmt::format("{}-{}", directory.filename().string(), number);
    }
    runs_.push_back({name, directory});
  }
}

std::vector<std::string> Runs::names() const {
  std::vector<std::string> names;
  for (const Run& run : runs_) names.push_back(run.name);
  return names;
}

const Runs::Run& Runs::find(const std::string& name) const {
  const auto found = std::ranges::find(runs_, name, &Run::name);
  if (found != runs_.end()) return *found;
  std::string known;
  for (const Run& run : runs_) known += (known.empty() ? "" : ", ") + run.name;
  fail(ErrorCode::not_found, "there is no run \"{}\"; {}", name.substr(0, 80),
       known.empty() ? "start with --run DIR to watch one" : "there are " + known);
}

std::vector<std::int64_t> Runs::checkpoints(const Run& run) const {
  std::vector<std::int64_t> steps;
  std::error_code error;
  fs::directory_iterator entry(RunDirectory(run.directory).checkpoints(), error);
  for (int seen = 0; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (++seen > most_checkpoint_entries) break;
    if (const auto step = step_of(entry->path())) steps.push_back(*step);
  }
  std::ranges::sort(steps);
  return steps;
}

fs::path Runs::checkpoint(const std::string& name, std::int64_t step) const {
  const Run& run = find(name);
  const std::vector<std::int64_t> steps = checkpoints(run);
  if (std::ranges::find(steps, step) == steps.end()) {
    std::string known;
    for (const std::int64_t each : steps)
      known += (known.empty() ? "" : ", ") + std::to_string(each);
    fail(ErrorCode::not_found, "run \"{}\" has no checkpoint of step {}; {}", name, step,
         known.empty() ? "it keeps none: set keep_every" : "there are " + known.substr(0, 200));
  }
  return RunDirectory(run.directory).checkpoint(step);
}

bool Runs::is_finished(const std::string& run) const {
  const fs::path& directory = find(run).directory;
  return naming_files_from(directory, [&] { return RunDirectory(directory).is_finished(); });
}

fs::path Runs::metrics_file(const std::string& run) const {
  return find(run).directory / "metrics.jsonl";
}

OrderedJson Runs::describe(const Run& run) const {
  const RunDirectory directory(run.directory);
  const RunRecord record = directory.read_record();
  const fs::path metrics = run.directory / "metrics.jsonl";
  const std::int64_t step = last_step(metrics);
  GptConfig config = record.settings.model;
  if (fs::exists(directory.last() / config_file_name)) {
    config = read_gpt_config(directory.last() / config_file_name);
  }
  const bool is_running =
      is_locked(run.directory).value_or(step < record.settings.steps && wrote_lately(metrics));
  OrderedJson settings = settings_to_json(record.settings);
  settings["tokenizer"] = last_folder(record.settings.tokenizer);
  OrderedJson description{{"name", run.name},
                          {"path_shown", run.directory.filename().string()},
                          {"settings", std::move(settings)},
                          {"steps_total", record.settings.steps},
                          {"step", step},
                          {"live", is_running},
                          {"checkpoints", checkpoints(run)},
                          {"parameters", count_parameters(config).total}};
  if (!record.sentence.empty()) description["sentence"] = record.sentence;
  return description;
}

OrderedJson Runs::describe_or_say_why(const Run& run) const {
  try {
    return naming_files_from(run.directory, [&] { return describe(run); });
  } catch (const Error& error) {
    return {{"name", run.name},
            {"path_shown", run.directory.filename().string()},
            {"error", error.what()}};
  }
}

OrderedJson Runs::describe() const {
  OrderedJson list = OrderedJson::array();
  for (const Run& run : runs_) list.push_back(describe_or_say_why(run));
  return {{"runs", std::move(list)}};
}

}  // namespace heed::server
