// config.json, the description of a model in Hugging Face's layout, in any known format; and the
// other files of a model directory that a model saved again keeps.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/json_fwd.h"
#include "formats/config_fields.h"
#include "formats/format.h"
#include "model/architecture.h"

namespace heed {

inline constexpr const char* config_file_name = "config.json";

// `source` names the document in errors. Throws Error{corrupt_data} for a missing or impossible
// value and Error{unsupported} for an option that heed does not support.
Architecture architecture_from_json(const Json& document, const std::string& source);
// The same of a model of one stack. Throws Error{unsupported} for an encoder-decoder.
StackSpecification stack_config_from_json(const Json& document, const std::string& source);

// In the first format that expresses the model. Throws Error{unsupported} where none does.
OrderedJson architecture_to_json(const Architecture& architecture);
OrderedJson stack_config_to_json(const StackSpecification& config);

// Whether there is such a format.
bool can_be_written(const Architecture& architecture);

// The document of a config.json or generation_config.json: JSON, in which numbers may also be NaN,
// Infinity and -Infinity, as Python writes them. These are strings of a form of their own, so that
// a field that heed reads refuses them and the others keep them. Throws as read_text_file and
// parse_json do.
Json parse_config(std::string_view text, const std::string& source);
Json read_config_document(const std::filesystem::path& file);
// The same in the order of the file, and its text again.
OrderedJson parse_ordered_config(std::string_view text, const std::string& source);
OrderedJson read_ordered_config(const std::filesystem::path& file);
std::string config_text(const OrderedJson& document);

StackSpecification read_stack_config(const std::filesystem::path& file);

inline constexpr const char* generation_config_file_name = "generation_config.json";

// Files of sentence-transformers beside an encoder's config.json (formats/pooling.h): what becomes
// of its states, and how they are pooled.
inline constexpr const char* modules_file_name = "modules.json";
inline constexpr const char* pooling_file_name = "1_Pooling/config.json";

// What describes a model and its tokenizer: what begins and ends its texts, how it chats, and how
// its states become one vector. Paths in the model's directory.
inline constexpr std::string_view description_file_names[] = {
    "tokenizer_config.json", "special_tokens_map.json",   "added_tokens.json",
    "chat_template.jinja",   "chat_template.json",        generation_config_file_name,
    modules_file_name,       "sentence_bert_config.json", pooling_file_name};

// Files of these names go wherever a model goes: those, and the tokenizer itself.
const std::vector<std::string_view>& companion_file_names();

// A file saved together with a model, such as its tokenizer.json.
struct CompanionFile {
  std::string name;
  std::string text;
};

// What is kept of the directory that a model was loaded from.
struct SourceFiles {
  // Of a model that was made in memory, and has no config.json.
  SourceFiles(std::vector<CompanionFile> beside = {}) : companions(std::move(beside)) {}  // NOLINT

  std::vector<CompanionFile> companions;
  OrderedJson config{};
};

// Throws what model_directory and read_config_document throw.
SourceFiles read_source_files(const std::filesystem::path& directory_or_file);

// The fields of a directory's config.json, and of generation_config.json, which leads; of a GGUF
// file, those that its metadata says. Throws
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
