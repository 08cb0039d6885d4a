// Toy models of every family of decoders, with random weights. toy_families() are those whose
// logits are sums of what heads and neurons write; every_toy_family() are all.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "generate/random_transformer.h"
#include "model/transformer.h"

namespace heed::testing {

struct ToyFamily {
  std::string name;
  StackSpecification stack;

  friend std::ostream& operator<<(std::ostream& out, const ToyFamily& family) {
    return out << family.name;
  }
};

// 2 layers of 4 heads of 8 on 32 channels: rows that integer formats of weights can group by 32.
inline StackSpecification toy_stack(std::int64_t context) {
  StackSpecification stack = make_gpt_config(2, 4, 32, context, 61);
  stack.block.feed_forward.width = 64;
  return stack;
}

// Of LLaMA: RMS norms, rotary positions, key heads shared by two query heads, gated feed-forward.
inline StackSpecification toy_llama(std::int64_t context) {
  StackSpecification stack = toy_stack(context);
  set_biases(stack, Biases::none);
  stack.block.norm = {.kind = NormKind::rms, .bias = false};
  stack.block.attention.key_value_heads = 2;
  stack.block.attention.positions = PositionKind::rotary;
  stack.block.feed_forward.activation = Activation::silu;
  stack.block.feed_forward.gated = true;
  stack.tied_unembedding = false;
  return stack;
}

// Of GPT-NeoX: a parallel residual, and half of each head rotates.
inline StackSpecification toy_neox(std::int64_t context) {
  StackSpecification stack = toy_stack(context);
  stack.block.residual = ResidualKind::parallel;
  stack.block.attention.positions = PositionKind::rotary;
  stack.block.attention.rotary.fraction = 0.5;
  stack.block.feed_forward.activation = Activation::gelu_erf;
  stack.tied_unembedding = false;
  return stack;
}

inline std::vector<ToyFamily> toy_families(std::int64_t context) {
  const auto changed = [](StackSpecification stack,
                          const std::function<void(StackSpecification&)>& change) {
    change(stack);
    return stack;
  };
  return {
      {"gpt2", toy_stack(context)},
      {"llama", toy_llama(context)},
      {"mistral", changed(toy_llama(context),
                          [](StackSpecification& stack) {
                            stack.block.attention.mask = {MaskKind::banded, {7, 7}};
                          })},
      {"qwen2", changed(toy_llama(context),
                        [](StackSpecification& stack) {
                          stack.block.attention.query_bias = true;
                          stack.block.attention.mask = {MaskKind::banded, {0, 5}};
                        })},
      {"qwen3", changed(toy_llama(context),
                        [](StackSpecification& stack) {
                          stack.block.attention.query_key_norm = true;
                          stack.tied_unembedding = true;
                        })},
      {"neox", toy_neox(context)},
      {"neox_sequential",
       changed(toy_neox(context),
               [](StackSpecification& stack) { stack.block.residual = ResidualKind::sequential; })},
      {"starcoder2", changed(toy_stack(context),
                             [](StackSpecification& stack) {
                               stack.block.attention.key_value_heads = 2;
                               stack.block.attention.positions = PositionKind::rotary;
                               stack.block.attention.mask = {MaskKind::banded, {6, 6}};
                             })},
      // No family, but what the others leave out: a cap and a scale of scores, pairs of neighbours.
      {"capped", changed(toy_llama(context),
                         [](StackSpecification& stack) {
                           stack.block.attention.soft_cap = 2;
                           stack.block.attention.scale = 0.4F;
                           stack.block.attention.rotary.pairing = RotaryPairing::neighbours;
                           stack.block.residual = ResidualKind::parallel;
                         })},
      {"falcon", changed(toy_neox(context),
                         [](StackSpecification& stack) {
                           stack.block.residual = ResidualKind::parallel_shared;
                           stack.block.attention.key_value_heads = 1;
                         })},
      // Of Gemma 3, another base in layers with a window; of OLMo 2, norms of all heads together.
      {"local", changed(toy_llama(context),
                        [](StackSpecification& stack) {
                          stack.block.attention.mask = {MaskKind::banded, {5, 0}};
                          stack.block.attention.rotary.local_base = 10;
                          stack.block.attention.query_key_norm = true;
                          stack.block.attention.head_norms = HeadNormExtent::all_heads;
                        })},
  };
}

inline std::vector<ToyFamily> every_toy_family(std::int64_t context) {
  std::vector<ToyFamily> families = toy_families(context);
  StackSpecification olmo2 = toy_llama(context);
  olmo2.block.norm.placement = NormPlacement::output;
  olmo2.block.attention.query_key_norm = true;
  olmo2.block.attention.head_norms = HeadNormExtent::all_heads;
  families.push_back({"olmo2", olmo2});
  StackSpecification gemma2 = toy_llama(context);
  gemma2.block.norm.placement = NormPlacement::around;
  gemma2.block.attention.soft_cap = 2;
  gemma2.block.attention.scale = 0.4F;
  gemma2.block.attention.mask = {MaskKind::banded, {5, 0}};
  gemma2.embedding_scale = 3;
  gemma2.logit_cap = 4;
  families.push_back({"gemma2", gemma2});
  return families;
}

// Random gains and biases too: after initialize() these are one and zero. The weights are large
// enough that attention is not even.
inline Transformer toy_transformer(const StackSpecification& stack) {
  Transformer transformer = random_transformer(stack);
  RandomStream random(11, 0);
  for (const auto& [id, shape] : transformer.parameters().list()) {
    if (shape.rank() != 1) continue;
    for (float& value : transformer.parameters().tensor(id).span()) {
      value = static_cast<float>(id.part == Part::weight ? 1 + 0.3 * random.normal()
                                                         : 0.3 * random.normal());
    }
  }
  return transformer;
}

}  // namespace heed::testing
