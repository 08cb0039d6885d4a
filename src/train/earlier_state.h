// Training states of earlier versions: one file, of the whole arena.
#pragma once

#include <filesystem>

#include "model/parameters.h"
#include "train/optimizer.h"
#include "train/run_position.h"

namespace heed {

// Parameters at the `own` ranges, and the optimizer's moments. Throws Error{corrupt_data} when the
// file does not fit the parameters.
RunPosition load_earlier_state(const std::filesystem::path& file, std::span<const ArenaRange> own,
                               GptParameters& parameters, Optimizer& optimizer);

// Its position alone. Throws Error{corrupt_data} when it has none.
RunPosition read_earlier_position(const std::filesystem::path& file);

}  // namespace heed
