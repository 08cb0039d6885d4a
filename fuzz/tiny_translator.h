// The smallest translator that has everything: two layers of each stack, a vocabulary of 64.
#pragma once

#include "model/transformer.h"

namespace heed {

// Token 1 starts the decoder, token 2 ends a text; the context is 12.
inline Transformer tiny_translator() {
  StackSpecification decoder = make_gpt_config(2, 2, 8, 12, 64);
  decoder.end_of_text = 2;
  StackSpecification encoder = decoder;
  encoder.role = StackRole::encoder;
  encoder.has_unembedding = false;
  encoder.block.attention.mask.kind = MaskKind::full;
  decoder.block.cross_attention = decoder.block.attention;
  decoder.block.cross_attention->positions = PositionKind::none;
  decoder.block.cross_attention->mask.kind = MaskKind::full;
  Transformer model({.stacks = {encoder, decoder}, .padding = 0, .decoder_start = 1});
  model.parameters().initialize(1);
  return model;
}

}  // namespace heed
