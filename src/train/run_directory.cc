#include "train/run_directory.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "model/gpt_files.h"

namespace heed {

std::filesystem::path RunDirectory::checkpoint(std::int64_t step) const {
  return checkpoints() / fmt::format("{:08}", step);
}

bool RunDirectory::holds_a_run() const { return std::filesystem::exists(record_file()); }

bool RunDirectory::is_finished() const {
  if (!std::filesystem::exists(state_file())) return false;
  const RunPosition position = read_run_position(state_file());
  return position.evaluated && position.step >= read_record().settings.steps;
}

void RunDirectory::create(const RunRecord& record) const {
  require(!holds_a_run(), ErrorCode::conflict,
          "'{}' already holds a run: continue it with --resume, or choose another --out",
          root_.string());
  make_directory(root_);
  OrderedJson json;
  json["settings"] = settings_to_json(record.settings);
  json["data"] = record.data;
  json["validation"] = record.validation;
  json["from"] = record.from;
  json["tokenizer_key"] = record.tokenizer_key;
  json["data_key"] = record.data_key;
  write_text_file(record_file(), json.dump(2) + "\n");
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
    record.from = json.at("from").get<std::string>();
    record.tokenizer_key = json.at("tokenizer_key").get<std::string>();
    record.data_key = json.at("data_key").get<std::string>();
  } catch (const Json::exception& error) {
    fail(ErrorCode::corrupt_data, "{}: not the record of a run ({})", source, error.what());
  }
  return record;
}

void RunDirectory::save_model(const std::filesystem::path& directory, const Gpt& gpt,
                              const Tokenizer& tokenizer) const {
  save_gpt(gpt, directory, {{tokenizer_file_name, tokenizer.to_json()}});
}

void RunDirectory::keep_model(std::int64_t step, const Gpt& gpt, const Tokenizer& tokenizer) const {
  const std::filesystem::path directory = checkpoint(step);
  std::filesystem::path beside = directory;
  beside += ".partial-checkpoint";
  std::error_code error;
  std::filesystem::remove_all(beside, error);  // of a run that was killed
  save_model(beside, gpt, tokenizer);
  std::filesystem::remove_all(directory, error);
  std::filesystem::rename(beside, directory, error);
  require(!error, ErrorCode::input_output, "cannot rename '{}' to '{}': {}", beside.string(),
          directory.string(), error.message());
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
  std::ifstream file(metrics_file());
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    // A line that a kill cut short is no JSON, and is dropped too.
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) continue;
    const auto step = json["step"].get<std::int64_t>();
    const bool is_of_position =
        step == position.step && (position.evaluated || json.contains("learning_rate"));
    if (step < position.step || is_of_position) kept += line + '\n';
  }
  write_text_file(metrics_file(), kept);
}

}  // namespace heed
