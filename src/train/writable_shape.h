// Whether a model that settings describe can be saved.
#pragma once

#include <filesystem>

#include "train/settings.h"

namespace heed {

// Throws Error{unsupported} for a shape that no file format can hold, of translators naming the
// settings that make it so. A run would find out at its first checkpoint.
void require_writable_shape(const TrainSettings& settings);

// The same of a model that is fine-tuned, whose shape its directory `from` holds already, and whose
// rates of dropout are the run's.
void require_writable_dropout(const Architecture& architecture, const std::filesystem::path& from);

}  // namespace heed
