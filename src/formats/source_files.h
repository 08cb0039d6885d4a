// The files of a model directory beside its weights: what is known of them, and what a model that
// is saved again keeps of the directory that it was loaded from.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "formats/config_fields.h"
#include "formats/format.h"

namespace heed {

inline constexpr const char* generation_config_file_name = "generation_config.json";

// What describes a model and its tokenizer: what begins and ends its texts, and how it chats.
inline constexpr std::string_view description_file_names[] = {
    "tokenizer_config.json",     "special_tokens_map.json", "added_tokens.json",
    generation_config_file_name, "chat_template.jinja",     "chat_template.json"};

// Files of these names go wherever a model goes: those, and the tokenizer itself.
const std::vector<std::string_view>& companion_file_names();

// A file saved together with a model, such as its tokenizer.json.
struct CompanionFile {
  std::string name;
  std::string text;
};

struct SourceFiles {
  // Of a model that was made in memory, and has no config.json.
  SourceFiles(std::vector<CompanionFile> beside = {}) : companions(std::move(beside)) {}  // NOLINT

  std::vector<CompanionFile> companions;
  OrderedJson config{};
};

// Throws what model_directory and read_config_document throw.
SourceFiles read_source_files(const std::filesystem::path& directory_or_file);

// The fields of a directory's config.json, and of generation_config.json, which leads. Throws
// Error{corrupt_data} for files that are not as they should be.
ConfigFields read_model_fields(const std::filesystem::path& directory);

// How a model is written.
struct WrittenConfig {
  const Format* format;
  OrderedJson config;
};

// In the format of its source, where that expresses it: the source's own config.json, with what is
// otherwise now, so that fields that heed does not know stay as they are. Without a source, or
// where its config would be read as another model, a new one in the first format that expresses the
// model. Throws Error{unsupported} where none does.
WrittenConfig written_config(const Architecture& architecture, const SourceFiles& source);

}  // namespace heed
