// The models that ship inside the binary: one that continues texts, and one that translates.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace heed {

inline constexpr std::string_view starter_name = "starter";
inline constexpr std::string_view embedded_translator_name = "translator";

struct EmbeddedModel {
  std::string_view config;             // config.json
  std::span<const std::byte> weights;  // model.safetensors
  std::string_view tokenizer;          // tokenizer.json
  std::string_view examples;           // examples.json, what measures claims about the model
};

// Absent in builds without models/starter.
std::optional<EmbeddedModel> starter_files();

// Absent in builds without models/translator.
std::optional<EmbeddedModel> translator_files();

// The files of the model of this name, of either kind; none for another name. Throws
// Error{not_found} where this build does not have it.
std::optional<EmbeddedModel> embedded_model(std::string_view name);

}  // namespace heed
