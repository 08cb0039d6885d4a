// Named configs: GPT-2's and GPT-3's, and heed's own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace heed {

struct GptPreset {
  std::string name;
  std::string description;
  GptConfig config;
};

const std::vector<GptPreset>& gpt_presets();

// Throws Error{not_found} with the known names.
const GptPreset& gpt_preset(std::string_view name);
bool is_gpt_preset(std::string_view name);

}  // namespace heed
