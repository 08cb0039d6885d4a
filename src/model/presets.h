// Named configs: GPT-2's, GPT-3's and those of other published families, and heed's own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/architecture.h"

namespace heed {

struct ModelPreset {
  std::string name;
  std::string description;
  StackSpecification config;
};

const std::vector<ModelPreset>& model_presets();

// Throws Error{not_found} with the known names.
const ModelPreset& model_preset(std::string_view name);
bool is_model_preset(std::string_view name);
std::string model_preset_names();  // "gpt2, gpt2-medium, …"

}  // namespace heed
