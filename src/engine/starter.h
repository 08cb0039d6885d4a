// The model that ships inside the binary.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace heed {

inline constexpr std::string_view starter_name = "starter";

struct StarterFiles {
  std::string_view config;             // config.json
  std::span<const std::byte> weights;  // model.safetensors
  std::string_view tokenizer;          // tokenizer.json
  std::string_view examples;           // examples.json, what measure_examples() returned
};

// Absent in builds without models/starter.
std::optional<StarterFiles> starter_files();

}  // namespace heed
