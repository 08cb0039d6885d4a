#include "model/architecture_presets.h"

#include <algorithm>
#include <cmath>

namespace heed {
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
  set_biases(stack, false);
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
