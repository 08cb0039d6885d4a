// Complete runs known by name: the shapes of model/presets.h with the settings that train them.
#pragma once

#include <string>
#include <string_view>

#include "train/settings.h"

namespace heed {

// Throws Error{not_found} with the names there are.
TrainSettings train_preset(std::string_view name);

// Whether a name is that of a run whose shape has no other name: translators, masked models.
bool is_run_preset(std::string_view name);
std::string run_preset_names();  // "multi30k-en-de, translator, …"

}  // namespace heed
