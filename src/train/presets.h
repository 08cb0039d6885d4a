// Complete runs known by name: the shapes of model/presets.h with the settings that train them.
#pragma once

#include <string_view>

#include "train/settings.h"

namespace heed {

// Throws Error{not_found} with the names there are.
TrainSettings train_preset(std::string_view name);

}  // namespace heed
