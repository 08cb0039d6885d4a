// Small encoder-decoders with random weights, of every placement of norms and kind of positions.
#pragma once

#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "microscope/traces/recorded_pass.h"
#include "model/transformer.h"

namespace heed::testing {

struct ToyPairShape {
  NormPlacement placement = NormPlacement::pre;
  PositionKind positions = PositionKind::sinusoidal;
  NormKind norm = NormKind::layer;  // rms: without biases and with scores that are not scaled: T5's

  friend std::ostream& operator<<(std::ostream& out, const ToyPairShape& shape) {
    return out << (shape.placement == NormPlacement::pre ? "pre " : "post ")
               << position_kind_name(shape.positions) << ' ' << norm_kind_name(shape.norm);
  }
};

inline std::vector<ToyPairShape> toy_pair_shapes() {
  return {{NormPlacement::pre, PositionKind::sinusoidal},
          {NormPlacement::post, PositionKind::sinusoidal},
          {NormPlacement::pre, PositionKind::relative},
          {NormPlacement::pre, PositionKind::relative, NormKind::rms},
          {NormPlacement::post, PositionKind::learned}};
}

// 2 layers of 4 heads of 8; token 1 starts the decoder, token 2 ends a text.
inline Architecture toy_pair_architecture(const ToyPairShape& shape) {
  StackSpecification decoder = make_gpt_config(2, 4, 32, 24, 50);
  decoder.initial_deviation = 0.25F;  // far from uniform attention
  decoder.end_of_text = 2;
  decoder.block.norm.placement = shape.placement;
  decoder.block.attention.positions = shape.positions;
  decoder.block.attention.relative = {.buckets = 8, .max_distance = 16};
  decoder.embedding_scale = std::sqrt(32.0F);
  decoder.final_norm = shape.placement == NormPlacement::pre;
  if (shape.norm == NormKind::rms) {
    decoder.block.norm.kind = NormKind::rms;
    set_biases(decoder, Biases::none);
    decoder.block.attention.scale = 1;
    decoder.embedding_scale = 1;
    decoder.initial_deviation = 0.15F;  // without the scale scores are larger
  }
  StackSpecification encoder = decoder;
  encoder.role = StackRole::encoder;
  encoder.has_unembedding = false;
  encoder.layers = 3;  // other than the decoder's
  encoder.block.attention.mask.kind = MaskKind::full;
  encoder.block.attention.relative.both_directions = true;
  decoder.block.cross_attention = decoder.block.attention;
  decoder.block.cross_attention->positions = PositionKind::none;
  decoder.block.cross_attention->mask.kind = MaskKind::full;
  return {.stacks = {encoder, decoder}, .padding = 0, .decoder_start = 1};
}

inline Transformer toy_translator(const Architecture& architecture) {
  Transformer model(architecture);
  model.parameters().initialize(11);
  return model;
}
inline Transformer toy_translator(const ToyPairShape& shape = {}) {
  return toy_translator(toy_pair_architecture(shape));
}

inline Texts toy_pair() {
  return {.source = {5, 12, 12, 8, 30, 41, 2}, .target = {1, 7, 19, 33, 44}};
}

}  // namespace heed::testing
