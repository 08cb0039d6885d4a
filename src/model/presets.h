// Named configs: GPT-2's, GPT-3's and those of other published families, and heed's own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/architecture.h"

namespace heed {

struct GptPreset {
  std::string name;
  std::string description;
  StackSpecification config;
};

const std::vector<GptPreset>& gpt_presets();

// Throws Error{not_found} with the known names.
const GptPreset& gpt_preset(std::string_view name);
bool is_gpt_preset(std::string_view name);
std::string gpt_preset_names();  // "gpt2, gpt2-medium, …"

}  // namespace heed
