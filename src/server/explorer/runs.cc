#include "server/explorer/runs.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>

#include "base/directories.h"
#include "base/error.h"
#include "base/files.h"
#include "formats/model_files.h"
#include "model/parameter_count.h"
#include "server/explorer/metrics_file.h"
#include "server/explorer/shown_files.h"
#include "train/run_directory.h"

namespace heed::server {
namespace {

namespace fs = std::filesystem;

// Without locks, a run that wrote within this time counts as running.
constexpr std::chrono::minutes live_time{2};
constexpr int max_checkpoint_entries = 100'000;

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

const char* origin_name(RunOrigin origin) {
  switch (origin) {
    case RunOrigin::given: return "given";
    case RunOrigin::recorded: return "recorded";
    case RunOrigin::live: return "live";
  }
  return "given";
}

bool wrote_lately(const fs::path& file) {
  std::error_code error;
  const auto written = fs::last_write_time(file, error);
  return !error && fs::file_time_type::clock::now() - written < live_time;
}

}  // namespace

Runs::Runs(const std::vector<fs::path>& directories) {
  for (const fs::path& directory : directories) add(directory, RunOrigin::given);
}

std::string Runs::add(const fs::path& given, RunOrigin origin) { return insert(given, origin); }

std::string Runs::insert(const fs::path& given, RunOrigin origin) const {
  require(RunDirectory(given).holds_a_run(), ErrorCode::not_found,
          "there is no training run in '{}': it has no run.json", given.string());
  const fs::path directory = fs::canonical(given);
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(runs_, directory, &Run::directory);
  if (known != runs_.end() && origin == RunOrigin::live) return known->name;
  std::string name = directory.filename().string();
  for (int number = 2; std::ranges::find(runs_, name, &Run::name) != runs_.end(); ++number) {
    name = fmt::format("{}-{}", directory.filename().string(), number);
  }
  runs_.push_back({name, directory, origin});
  return name;
}

void Runs::add_live_runs(const fs::path& directory) {
  live_runs_ = directory;
  look_for_live_runs();
}

void Runs::look_for_live_runs() const {
  if (live_runs_.empty()) return;
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(live_runs_, error), end; !error && entry != end;
       entry.increment(error)) {
    if (RunDirectory(entry->path()).holds_a_run()) found.push_back(entry->path());
  }
  // live-9 comes before live-10.
  std::ranges::sort(found, [](const fs::path& a, const fs::path& b) {
    const std::string first = a.string();
    const std::string second = b.string();
    return std::pair(first.size(), first) < std::pair(second.size(), second);
  });
  for (const fs::path& run : found) {
    try {
      insert(run, RunOrigin::live);
    } catch (const std::exception&) {
      continue;  // it went, or cannot be read: the others are shown
    }
  }
}

std::vector<Runs::Run> Runs::all() const {
  const std::lock_guard lock(mutex_);
  return runs_;
}

std::vector<std::string> Runs::names() const {
  std::vector<std::string> names;
  for (const Run& run : all()) names.push_back(run.name);
  return names;
}

Runs::Run Runs::find(const std::string& name) const {
  std::vector<Run> runs = all();
  auto found = std::ranges::find(runs, name, &Run::name);
  if (found == runs.end()) {
    look_for_live_runs();
    runs = all();
    found = std::ranges::find(runs, name, &Run::name);
  }
  if (found != runs.end()) return *found;
  std::string known;
  for (const Run& run : runs) known += (known.empty() ? "" : ", ") + run.name;
  fail(ErrorCode::not_found, "there is no run \"{}\"; {}", name.substr(0, 80),
       known.empty() ? "start with --run DIR to watch one" : "there are " + known);
}

std::vector<std::int64_t> Runs::checkpoints(const Run& run) const {
  std::vector<std::int64_t> steps;
  std::error_code error;
  fs::directory_iterator entry(RunDirectory(run.directory).checkpoints(), error);
  for (int seen = 0; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (++seen > max_checkpoint_entries) break;
    if (const auto step = step_of(entry->path())) steps.push_back(*step);
  }
  std::ranges::sort(steps);
  return steps;
}

fs::path Runs::checkpoint(const std::string& name, std::int64_t step) const {
  const Run run = find(name);
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

bool Runs::is_finished(const std::string& name) const {
  const Run found = find(name);
  // Its training state was left out.
  if (found.origin == RunOrigin::recorded) return true;
  return naming_files_from(found.directory,
                           [&] { return RunDirectory(found.directory).is_finished(); });
}

fs::path Runs::metrics_file(const std::string& run) const {
  return find(run).directory / "metrics.jsonl";
}

OrderedJson Runs::describe(const Run& run) const {
  const RunDirectory directory(run.directory);
  const RunRecord record = directory.read_record();
  const fs::path metrics = run.directory / "metrics.jsonl";
  const std::int64_t step = last_step(metrics);
  StackSpecification config = record.settings.model;
  if (fs::exists(directory.last() / config_file_name)) {
    config = read_stack_config(directory.last() / config_file_name);
  }
  const bool is_running =
      is_locked(run.directory).value_or(step < record.settings.steps && wrote_lately(metrics));
  OrderedJson settings = settings_to_json(record.settings);
  settings["tokenizer"] = last_folder(record.settings.tokenizer);
  OrderedJson description{
      {"name", run.name},
      {"origin", origin_name(run.origin)},
      {"path_shown", run.directory.filename().string()},
      {"settings", std::move(settings)},
      {"steps_total", record.settings.steps},
      {"step", step},
      {"live", is_running},
      {"checkpoints", checkpoints(run)},
      {"parameters", count_parameters(config).total},
      {"entropy_per_token",
       record.entropy_per_token ? json_number(*record.entropy_per_token) : OrderedJson(nullptr)}};
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
  look_for_live_runs();
  OrderedJson list = OrderedJson::array();
  for (const Run& run : all()) list.push_back(describe_or_say_why(run));
  return {{"runs", std::move(list)}};
}

}  // namespace heed::server
