#include "server/explorer/runs.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "model/gpt_files.h"
#include "model/parameter_count.h"
#include "server/explorer/shown_files.h"
#include "train/run_directory.h"

namespace heed::server {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes live_time{2};  // a run that wrote so lately is still going

// The name of the folder that a checkpoint is in is its step: "00000250".
std::optional<std::int64_t> step_of(const fs::path& directory) {
  const std::string name = directory.filename().string();
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc{} || end != name.data() + name.size() || step < 0) return std::nullopt;
  return fs::exists(directory / config_file_name) ? std::optional(step) : std::nullopt;
}

// "bpe" of "bpe" and of "/elsewhere/bpe/": where things lie is nobody's business.
std::string last_folder(const fs::path& path) {
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

bool wrote_lately(const fs::path& file) {
  std::error_code error;
  const auto written = fs::last_write_time(file, error);
  return !error && fs::file_time_type::clock::now() - written < live_time;
}

// The last line that is a whole one.
Json last_line(const fs::path& file) {
  std::ifstream in(file);
  Json last;
  for (std::string line; std::getline(in, line);) {
    Json parsed = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!parsed.is_object() || !parsed.contains("step")) continue;
    if (parsed["step"].is_number_integer()) last = std::move(parsed);
  }
  return last;
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
  for (const fs::directory_entry& entry :
       fs::directory_iterator(RunDirectory(run.directory).checkpoints(), error)) {
    if (const auto step = step_of(entry.path())) steps.push_back(*step);
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
  const Json last = last_line(metrics);
  const std::int64_t step = last.is_object() ? last["step"].get<std::int64_t>() : 0;
  GptConfig config = record.settings.model;
  if (fs::exists(directory.last() / config_file_name)) {
    config = read_gpt_config(directory.last() / config_file_name);
  }
  OrderedJson settings = settings_to_json(record.settings);
  settings["tokenizer"] = last_folder(record.settings.tokenizer);
  return {{"name", run.name},
          {"path_shown", run.directory.filename().string()},
          {"settings", std::move(settings)},
          {"steps_total", record.settings.steps},
          {"step", step},
          {"live", step < record.settings.steps && wrote_lately(metrics)},
          {"checkpoints", checkpoints(run)},
          {"parameters", count_parameters(config).total}};
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

std::vector<Json> MetricsReader::read_new() {
  std::error_code error;
  const auto size = static_cast<std::int64_t>(fs::file_size(file_, error));
  if (error) return {};
  if (size < position_) position_ = 0;  // a resumed run cut it
  if (size == position_) return {};
  std::ifstream in(file_, std::ios::binary);
  in.seekg(position_);
  std::string text(static_cast<std::size_t>(size - position_), '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  const std::size_t whole = text.rfind('\n');
  if (whole == std::string::npos) return {};
  position_ += static_cast<std::int64_t>(whole) + 1;
  std::vector<Json> rows;
  for (std::size_t begin = 0; begin <= whole;) {
    const std::size_t end = text.find('\n', begin);
    Json row = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                           text.begin() + static_cast<std::ptrdiff_t>(end), nullptr,
                           /*allow_exceptions=*/false);
    if (row.is_object()) rows.push_back(std::move(row));
    begin = end + 1;
  }
  return rows;
}

}  // namespace heed::server
