#include "model/presets.h"

#include <algorithm>
#include <cmath>

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

// Published decoders of other families, as their config.json says.
struct PublishedDecoder {
  const char* name;
  const char* description;
  std::int64_t layers;
  std::int64_t heads;
  std::int64_t key_value_heads;
  std::int64_t head_size;
  std::int64_t channels;
  std::int64_t feed_forward;
  std::int64_t context;
  std::int64_t vocabulary_size;
  double rotary_base;
  bool tied;
};
constexpr PublishedDecoder decoders[] = {
    {"llama-3.2-1b", "LLaMA 3.2, 1.2 B parameters", 16, 32, 8, 64, 2048, 8192, 131072, 128256, 5e5,
     true},
    {"llama-3-8b", "LLaMA 3, 8 B parameters", 32, 32, 8, 128, 4096, 14336, 8192, 128256, 5e5,
     false},
    {"mistral-7b", "Mistral 0.1, 7.2 B parameters", 32, 32, 8, 128, 4096, 14336, 32768, 32000, 1e4,
     false},
    {"qwen2.5-0.5b", "Qwen 2.5, 494 M parameters", 24, 14, 2, 64, 896, 4864, 32768, 151936, 1e6,
     true},
    {"qwen3-0.6b", "Qwen 3, 596 M parameters", 28, 16, 8, 128, 1024, 3072, 40960, 151936, 1e6,
     true},
    {"pythia-160m", "Pythia (GPT-NeoX), 162 M parameters", 12, 12, 12, 64, 768, 3072, 2048, 50304,
     1e4, false},
};

// LLaMA's block: RMS norms, rotary positions, a gated feed-forward layer, no biases.
void use_llama_block(StackSpecification& stack) {
  stack.block.norm = {.kind = NormKind::rms, .bias = false};
  stack.block.attention.positions = PositionKind::rotary;
  stack.block.feed_forward.activation = Activation::silu;
  stack.block.feed_forward.gated = true;
  set_biases(stack, Biases::none);
}

StackSpecification decoder_of(const PublishedDecoder& row) {
  StackSpecification stack =
      make_gpt_config(row.layers, row.heads, row.channels, row.context, row.vocabulary_size);
  AttentionSpecification& attention = stack.block.attention;
  attention.key_value_heads = row.key_value_heads;
  attention.head_size = row.head_size;
  stack.block.feed_forward.width = row.feed_forward;
  stack.tied_unembedding = row.tied;
  const std::string_view name = row.name;
  if (name.starts_with("pythia")) {
    attention.positions = PositionKind::rotary;
    attention.rotary.fraction = 0.25;
    stack.block.feed_forward.activation = Activation::gelu_erf;
    stack.block.residual = ResidualKind::parallel;
    stack.end_of_text = 0;
    return stack;
  }
  use_llama_block(stack);
  attention.rotary.base = row.rotary_base;
  if (name == "llama-3.2-1b") {
    attention.rotary.scaling = {.kind = RotaryScalingKind::llama3,
                                .factor = 32,
                                .original_context = 8192,
                                .low_frequency_factor = 1,
                                .high_frequency_factor = 4};
  }
  if (name.starts_with("llama")) stack.end_of_text = 128001;
  if (name.starts_with("mistral")) {
    attention.mask = {
        .kind = MaskKind::banded,
        .windows = std::vector<std::int64_t>(static_cast<std::size_t>(row.layers), 4096)};
    stack.end_of_text = 2;
  }
  if (name.starts_with("qwen")) {
    stack.block.norm.epsilon = 1e-6F;
    stack.end_of_text = 151643;
    (name.starts_with("qwen3") ? attention.query_key_norm : attention.query_bias) = true;
  }
  return stack;
}

std::vector<ModelPreset> make_presets() {
  std::vector<ModelPreset> presets;
  for (const Row& row : published) {
    StackSpecification config =
        make_gpt_config(row.layers, row.heads, row.channels, row.context, gpt2_vocabulary);
    config.block.attention.head_size = row.head_size;
    config.end_of_text = gpt2_end_of_text;
    presets.push_back({row.name, row.description, config});
  }

  for (const PublishedDecoder& row : decoders) {
    presets.push_back({row.name, row.description, decoder_of(row)});
  }

  StackSpecification character = make_gpt_config(4, 4, 128, 64, 65);
  set_biases(character, Biases::none);
  presets.push_back(
      {"shakespeare-char-cpu", "4 layers over characters, for a CPU in minutes", character});

  character = make_gpt_config(6, 6, 384, 256, 65);
  set_biases(character, Biases::none);
  character.embedding_dropout = character.attention_dropout = character.residual_dropout = 0.2F;
  presets.push_back({"shakespeare-char", "6 layers over characters, with dropout", character});

  character = make_gpt_config(4, 4, 128, 64, 65);
  use_llama_block(character);
  character.block.attention.key_value_heads = 2;
  character.block.feed_forward.width = 352;  // about 8/3·C: three matrices hold what two did
  presets.push_back({"shakespeare-char-llama", "the same size with LLaMA's block", character});

  // Untied: with tied embeddings, words that are equally likely in the same contexts are pulled
  // together, and attention can no longer tell one name from another to copy it.
  StackSpecification starter = make_gpt_config(6, 6, 192, 256, 2560);
  starter.tied_unembedding = false;
  starter.initial_deviation = 0.06F;  // about 1/√C, as the width is small
  starter.end_of_text = 0;
  presets.push_back({"starter", "the model that ships with heed", starter});

  StackSpecification english = make_gpt_config(6, 5, 320, 256, 8192);
  use_llama_block(english);  // this line away: learned positions and GPT-2's block
  english.block.feed_forward.width = 864;
  english.initial_deviation = 0.04F;
  english.end_of_text = 8191;
  presets.push_back({"english", "the model of ordinary English that ships with heed", english});
  return presets;
}

}  // namespace

const std::vector<ModelPreset>& model_presets() {
  static const std::vector<ModelPreset> presets = make_presets();
  return presets;
}

bool is_model_preset(std::string_view name) {
  return std::ranges::any_of(model_presets(),
                             [&](const auto& preset) { return preset.name == name; });
}

const ModelPreset& model_preset(std::string_view name) {
  for (const ModelPreset& preset : model_presets()) {
    if (preset.name == name) return preset;
  }
  fail(ErrorCode::not_found, "there is no config named '{}'; expected one of {}", name,
       model_preset_names());
}

std::string model_preset_names() {
  std::string names;
  for (const ModelPreset& preset : model_presets()) {
    names += (names.empty() ? "" : ", ") + preset.name;
  }
  return names;
}

namespace {

// The encoder of these sizes, and the decoder that attends to it.
Architecture stacks_of(const StackSpecification& decoder_alone) {
  StackSpecification encoder = decoder_alone, decoder = decoder_alone;
  encoder.role = StackRole::encoder;
  encoder.has_unembedding = false;
  encoder.block.attention.mask.kind = MaskKind::full;
  decoder.block.cross_attention = encoder.block.attention;
  decoder.block.cross_attention->positions = PositionKind::none;
  return {.stacks = {encoder, decoder}};
}

// Raffel et al. 2020, table of the model's sizes; 32,128 rows of embedding as published.
struct T5Row {
  const char* name;
  const char* description;
  std::int64_t layers;
  std::int64_t heads;
  std::int64_t channels;
  std::int64_t feed_forward;
};
constexpr T5Row t5_rows[] = {
    {"t5-small", "T5 small, 60.5 M parameters", 6, 8, 512, 2048},
    {"t5-base", "T5 base, 223 M parameters", 12, 12, 768, 3072},
};

Architecture t5(const T5Row& row) {
  StackSpecification stack = make_gpt_config(row.layers, row.heads, row.channels, 512, 32128);
  stack.block.norm = {.kind = NormKind::rms, .epsilon = 1e-6F, .bias = false};
  stack.block.attention.positions = PositionKind::relative;
  stack.block.attention.scale = 1.0F;
  stack.block.feed_forward.width = row.feed_forward;
  stack.block.feed_forward.activation = Activation::relu;
  set_biases(stack, Biases::none);
  Architecture both = stacks_of(stack);
  both.stacks[0].block.attention.relative.both_directions = true;
  both.stacks[1].logit_scale = 1.0F / std::sqrt(static_cast<float>(row.channels));
  both.padding = both.decoder_start = 0;
  return both;
}

// Devlin et al. 2019, with the head of its masked language model.
Architecture bert() {
  StackSpecification stack = make_gpt_config(12, 12, 768, 512, 30522);
  stack.role = StackRole::encoder;
  stack.block.norm.placement = NormPlacement::post;
  stack.block.norm.epsilon = 1e-12F;
  stack.block.attention.mask.kind = MaskKind::full;
  stack.block.feed_forward.activation = Activation::gelu_erf;
  stack.embedding_norm = true;
  stack.token_types = 2;
  stack.final_norm = false;
  stack.prediction_head = true;
  stack.unembedding_bias = true;
  return {.stacks = {stack}, .padding = 0};
}

std::vector<ArchitecturePreset> make_architecture_presets() {
  std::vector<ArchitecturePreset> presets = {
      {"transformer-base", "the original Transformer, 63 M parameters", original_transformer({})},
      {"transformer-big", "the original Transformer, big, 214 M parameters",
       original_transformer({.heads = 16, .channels = 1024, .feed_forward = 4096})},
      {"bert-base-uncased", "BERT base, an encoder, 110 M parameters", bert()}};
  for (const T5Row& row : t5_rows) presets.push_back({row.name, row.description, t5(row)});
  return presets;
}

}  // namespace

Architecture original_transformer(const TransformerSizes& sizes) {
  StackSpecification stack = make_gpt_config(sizes.layers, sizes.heads, sizes.channels,
                                             sizes.context, sizes.vocabulary_size);
  stack.block.norm.placement = NormPlacement::post;
  stack.block.attention.positions = PositionKind::sinusoidal;
  stack.block.feed_forward.width = sizes.feed_forward;
  stack.block.feed_forward.activation = Activation::relu;
  stack.embedding_scale = std::sqrt(static_cast<float>(sizes.channels));
  stack.final_norm = false;
  return stacks_of(stack);
}

const std::vector<ArchitecturePreset>& architecture_presets() {
  static const std::vector<ArchitecturePreset> presets = make_architecture_presets();
  return presets;
}

const ArchitecturePreset* find_architecture_preset(std::string_view name) {
  const auto& presets = architecture_presets();
  const auto found = std::ranges::find(presets, name, &ArchitecturePreset::name);
  return found == presets.end() ? nullptr : &*found;
}

}  // namespace heed
