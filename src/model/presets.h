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

// Published models that are not one decoder: encoder-decoders and encoders, to count and to plan.

struct ArchitecturePreset {
  std::string name;
  std::string description;
  Architecture architecture;
};

const std::vector<ArchitecturePreset>& architecture_presets();

// Null for an unknown name.
const ArchitecturePreset* find_architecture_preset(std::string_view name);

// The two stacks of the original Transformer (Vaswani et al. 2017): norms after their branches,
// sinusoidal positions, ReLU, one embedding for both texts and the output.
struct TransformerSizes {
  std::int64_t layers = 6;  // of each stack
  std::int64_t heads = 8;
  std::int64_t channels = 512;
  std::int64_t feed_forward = 2048;
  std::int64_t context = 1024;
  std::int64_t vocabulary_size = 37000;
};
Architecture original_transformer(const TransformerSizes& sizes);

}  // namespace heed
