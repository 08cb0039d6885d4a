#include "model/presets.h"

#include <algorithm>

#include "base/error.h"

namespace heed {
namespace {

constexpr std::int64_t gpt2_vocabulary = 50257;
constexpr std::int64_t gpt2_end_of_text = 50256;

struct Row {
  const char* name;
  const char* description;
  std::int64_t layers;
  std::int64_t heads;
  std::int64_t head_size;
  std::int64_t channels;
  std::int64_t context;
};

// GPT-2: Radford et al. 2019, table 2. GPT-3: Brown et al. 2020, table 2.1; where that table's
// heads and head size do not multiply to the width (XL: 24 of 128 for 2048; 13B: 40 of 128 for
// 5140), the width that the parameter count confirms is kept and the heads fit it.
constexpr Row published[] = {
    {"gpt2", "GPT-2 small, 124 M parameters", 12, 12, 64, 768, 1024},
    {"gpt2-medium", "GPT-2 medium, 355 M parameters", 24, 16, 64, 1024, 1024},
    {"gpt2-large", "GPT-2 large, 774 M parameters", 36, 20, 64, 1280, 1024},
    {"gpt2-xl", "GPT-2 XL, 1.6 B parameters", 48, 25, 64, 1600, 1024},
    {"gpt3-small", "GPT-3 small, 125 M parameters", 12, 12, 64, 768, 2048},
    {"gpt3-medium", "GPT-3 medium, 356 M parameters", 24, 16, 64, 1024, 2048},
    {"gpt3-large", "GPT-3 large, 760 M parameters", 24, 16, 96, 1536, 2048},
    {"gpt3-xl", "GPT-3 XL, 1.3 B parameters", 24, 16, 128, 2048, 2048},
    {"gpt3-2.7b", "GPT-3 2.7 B parameters", 32, 32, 80, 2560, 2048},
    {"gpt3-6.7b", "GPT-3 6.7 B parameters", 32, 32, 128, 4096, 2048},
    {"gpt3-13b", "GPT-3 13 B parameters", 40, 40, 128, 5120, 2048},
    {"gpt3", "GPT-3, 175 B parameters", 96, 96, 128, 12288, 2048},
};

std::vector<GptPreset> make_presets() {
  std::vector<GptPreset> presets;
  for (const Row& row : published) {
    GptConfig config =
        make_gpt_config(row.layers, row.heads, row.channels, row.context, gpt2_vocabulary);
    config.head_size = row.head_size;
    config.end_of_text = gpt2_end_of_text;
    presets.push_back({row.name, row.description, config});
  }

  GptConfig character = make_gpt_config(4, 4, 128, 64, 65);
  character.has_bias = false;
  presets.push_back(
      {"shakespeare-char-cpu", "4 layers over characters, for a CPU in minutes", character});

  character = make_gpt_config(6, 6, 384, 256, 65);
  character.has_bias = false;
  character.embedding_dropout = character.attention_dropout = character.residual_dropout = 0.2F;
  presets.push_back({"shakespeare-char", "6 layers over characters, with dropout", character});

  // Untied: with tied embeddings, words that are equally likely in the same contexts are pulled
  // together, and attention can no longer tell one name from another to copy it.
  GptConfig starter = make_gpt_config(6, 6, 192, 256, 2560);
  starter.tied_unembedding = false;
  starter.initial_deviation = 0.06F;  // about 1/√C, as the width is small
  starter.end_of_text = 0;
  presets.push_back({"starter", "the model that ships with heed", starter});
  return presets;
}

}  // namespace

const std::vector<GptPreset>& gpt_presets() {
  static const std::vector<GptPreset> presets = make_presets();
  return presets;
}

bool is_gpt_preset(std::string_view name) {
  return std::ranges::any_of(gpt_presets(),
                             [&](const auto& preset) { return preset.name == name; });
}

const GptPreset& gpt_preset(std::string_view name) {
  std::string names;
  for (const GptPreset& preset : gpt_presets()) {
    if (preset.name == name) return preset;
    names += (names.empty() ? "" : ", ") + preset.name;
  }
  fail(ErrorCode::not_found, "there is no config named '{}'; expected one of {}", name, names);
}

}  // namespace heed
