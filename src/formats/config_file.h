// config.json: the description of a model in Hugging Face's layout, in any known format.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "model/architecture.h"

namespace heed {

inline constexpr const char* config_file_name = "config.json";

// `source` names the document in errors. Throws Error{corrupt_data} for a missing or impossible
// value and Error{unsupported} for an option that heed does not support.
Architecture architecture_from_json(const Json& document, const std::string& source);
// The same of a model of one stack. Throws Error{unsupported} for an encoder-decoder.
StackSpecification gpt_config_from_json(const Json& document, const std::string& source);

// In the first format that expresses the model. Throws Error{unsupported} where none does.
OrderedJson architecture_to_json(const Architecture& architecture);
OrderedJson gpt_config_to_json(const StackSpecification& config);

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

StackSpecification read_gpt_config(const std::filesystem::path& file);

}  // namespace heed
