// How one vector is made of the states of a text's tokens: what a model's files say of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "formats/config_file.h"

namespace heed {

enum class TokenPooling : std::uint8_t { mean, first, last };

// That of a model directory: its `pooling_file_name`, or else the field `pooling_type` of
// config.json; of a GGUF file, its key of that name. The mean where nothing says otherwise. Throws
// Error{unsupported} for another kind (the largest, several side by side, a rank) and for a model
// of which more is computed than pooling, and Error{corrupt_data} for files that are not as they
// should be.
TokenPooling read_pooling(const std::filesystem::path& directory_or_file);

// The `pooling_type` of a GGUF file that these files become; 0 (none) where they say nothing that
// it can say.
std::int64_t pooling_type_of(const SourceFiles& source);

}  // namespace heed
