// A small translator with random weights and a joint vocabulary, in memory.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "model/transformer.h"
#include "tokenizer/train_byte_pair.h"

namespace heed::testing {

// Of a few words of two languages; <pad>, <s> and </s> are 0, 1 and 2.
inline TranslationTokenizers small_joint_vocabulary() {
  constexpr std::array<std::string_view, 2> texts{
      "the dog sees the cat\nthe cat sees a bird\na bird sees the dog\n",
      "der Hund sieht die Katze\ndie Katze sieht einen Vogel\nein Vogel sieht den Hund\n"};
  const std::shared_ptr<const Tokenizer> tokenizer =
      learn_joint_vocabulary(std::span<const std::string_view>(texts), {.vocabulary_size = 320});
  return {.source = tokenizer, .target = tokenizer};
}

// One layer a stack, a context of 32. The vocabulary is larger than the tokenizer's, as published
// ones are.
inline Transformer small_translator(const TranslationTokenizers& tokenizers,
                                    std::uint64_t seed = 5) {
  const Tokenizer& target = *tokenizers.target;
  StackSpecification decoder = make_gpt_config(1, 2, 16, 32, target.vocabulary_size() + 3);
  decoder.initial_deviation = 0.5F;
  decoder.block.feed_forward.activation = Activation::relu;
  decoder.block.norm.placement = NormPlacement::post;
  decoder.final_norm = false;
  decoder.block.attention.positions = PositionKind::sinusoidal;
  decoder.block.attention.sinusoids = SinusoidOrder::halves;
  decoder.embedding_scale = 4.0F;
  decoder.unembedding_bias = true;
  decoder.end_of_text = *target.end_of_text();
  StackSpecification encoder = decoder;
  encoder.role = StackRole::encoder;
  encoder.has_unembedding = false;
  encoder.unembedding_bias = false;
  encoder.block.attention.mask.kind = MaskKind::full;
  decoder.block.cross_attention = decoder.block.attention;
  decoder.block.cross_attention->positions = PositionKind::none;
  decoder.block.cross_attention->mask.kind = MaskKind::full;
  Transformer model({.stacks = {encoder, decoder},
                     .padding = *target.padding(),
                     .decoder_start = target.start().value_or(*target.padding())});
  model.parameters().initialize(seed);
  return model;
}

}  // namespace heed::testing
