#include "train/run_directory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/content_hash.h"
#include "base/error.h"
#include "base/files.h"
#include "formats/config_file.h"

namespace heed {
namespace {

// Whether a run at `position` has written this line of metrics and will not write it again. A line
// that a kill cut short is not valid JSON, and is dropped too.
bool is_before(const RunPosition& position, std::string_view line) {
  try {
    const Json json = parse_json(line, "metrics.jsonl");
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) {
      return false;
    }
    const auto step = json["step"].get<std::int64_t>();
    return step < position.step ||
           (step == position.step && (position.evaluated || json.contains("learning_rate")));
  } catch (const Error&) {
    return false;
  }
}

std::string record_text(const RunRecord& record) {
  OrderedJson json;
  json["settings"] = settings_to_json(record.settings);
  json["data"] = record.data;
  json["validation"] = record.validation;
  if (!record.validation_target.empty()) json["validation_target"] = record.validation_target;
  json["from"] = record.from;
  json["tokenizer_key"] = record.tokenizer_key;
  json["data_key"] = record.data_key;
  json["validation_key"] = record.validation_key;
  json["threads"] = record.threads;
  json["sentence"] = record.sentence;
  if (record.entropy_per_token) json["entropy_per_token"] = *record.entropy_per_token;
  return json.dump(2) + "\n";
}

}  // namespace

std::filesystem::path RunDirectory::checkpoint(std::int64_t step) const {
  return checkpoints() / fmt::format("{:08}", step);
}

std::filesystem::path RunDirectory::result() const {
  std::error_code error;
  return std::filesystem::exists(average() / config_file_name, error) ? average() : last();
}

bool RunDirectory::holds_a_run() const {
  std::error_code error;
  return std::filesystem::exists(record_file(), error);
}

bool RunDirectory::holds_a_model() const {
  std::error_code error;
  return std::filesystem::exists(root_ / config_file_name, error);
}

void RunDirectory::remove_model() const { remove_file(root_ / config_file_name); }

bool RunDirectory::is_finished() const {
  if (!holds_training_state(last())) return false;
  const RunPosition position = read_run_position(last());
  return position.evaluated && is_trained(read_record().settings, position);
}

void RunDirectory::create(const RunRecord& record) const {
  require(!holds_a_run(), ErrorCode::conflict,
          "'{}' already holds a run: continue it with --resume, or choose another --out",
          root_.string());
  replace_record(record);
}

void RunDirectory::replace_record(const RunRecord& record) const {
  write_text_file(record_file(), record_text(record));
}

RunRecord RunDirectory::read_record() const {
  require(holds_a_run(), ErrorCode::not_found, "there is no run to resume in '{}'", root_.string());
  const std::string source = record_file().string();
  const Json json = parse_json(read_text_file(record_file(), 1 << 24), source);
  RunRecord record;
  try {
    apply_settings(record.settings, json.at("settings"), source);
    record.data = json.at("data").get<std::vector<std::string>>();
    record.validation = json.at("validation").get<std::string>();
    record.validation_target = json.value("validation_target", "");
    record.from = json.at("from").get<std::string>();
    record.tokenizer_key = json.at("tokenizer_key").get<std::string>();
    record.data_key = json.at("data_key").get<std::string>();
    // Absent in the records of earlier versions.
    record.validation_key = json.value("validation_key", "");
    record.threads = json.value("threads", 0);
    record.sentence = json.value("sentence", "");
    if (json.contains("entropy_per_token")) {
      record.entropy_per_token = json["entropy_per_token"].get<double>();
    }
  } catch (const Json::exception& error) {
    fail(ErrorCode::corrupt_data, "{}: not the record of a run ({})", source, error.what());
  }
  return record;
}

std::string RunDirectory::key() const {
  RunRecord record = read_record();
  record.settings.steps = 0;
  const std::string text = record_text(record);
  ContentHasher hasher(HashKind::sha256, std::ssize(text));
  hasher.add(text);
  return hasher.finish().hex;
}

void RunDirectory::keep_model(std::int64_t step,
                              const std::function<void(const std::filesystem::path&)>& save) const {
  const std::filesystem::path directory = checkpoint(step);
  std::filesystem::path unfinished = directory;
  unfinished += ".partial-checkpoint";
  std::error_code error;
  std::filesystem::remove_all(unfinished, error);
  save(unfinished);
  std::filesystem::remove_all(directory, error);
  std::filesystem::rename(unfinished, directory, error);
  require(!error, ErrorCode::input_output, "cannot rename '{}' to '{}': {}", unfinished.string(),
          directory.string(), error.message());
}

void RunDirectory::remove_abandoned() const {
  constexpr std::string_view mark = ".partial-checkpoint";
  std::error_code error;
  std::vector<std::filesystem::path> unfinished;
  for (std::filesystem::directory_iterator entry(checkpoints(), error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().string().ends_with(mark)) {
      unfinished.push_back(entry->path());
    } else {
      remove_abandoned_files(entry->path());
    }
  }
  for (const auto& directory : unfinished) std::filesystem::remove_all(directory, error);
  for (const auto& directory : {root_, last(), best(), average(), evaluations()})
    remove_abandoned_files(directory);
  remove_unused_shards(last());
}

void RunDirectory::append_metrics(const OrderedJson& line) const {
  std::ofstream file(metrics_file(), std::ios::app);
  file << line.dump() << '\n';
  file.flush();
  require(file.good(), ErrorCode::input_output, "cannot write '{}': {}", metrics_file().string(),
          std::strerror(errno));
}

void RunDirectory::truncate_metrics(const RunPosition& position) const {
  if (!std::filesystem::exists(metrics_file())) return;
  std::string kept;
  const std::string text = read_text_file(metrics_file());
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (is_before(position, line)) kept.append(line) += '\n';
  }
  write_text_file(metrics_file(), kept);
}

}  // namespace heed
