// A small model of random weights, far enough from the linear regime that its logits differ.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "model/comparison.h"
#include "model/transformer.h"

namespace heed::testing {

inline StackSpecification small_config() { return make_gpt_config(3, 4, 32, 24, 61); }

inline Transformer random_transformer(const StackSpecification& config, std::uint64_t seed = 7) {
  Transformer transformer({.stacks = {config}});
  transformer.parameters().initialize(seed);
  for (float& value : transformer.parameters().all()) value *= 4.0F;
  return transformer;
}

inline std::vector<std::int32_t> random_tokens(std::int64_t count, std::int64_t vocabulary_size,
                                               std::uint64_t seed) {
  RandomStream random(seed, 0);
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    tokens.push_back(
        static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocabulary_size))));
  }
  return tokens;
}

// The states (T, C) at the end of a stack, of a whole sequence.
inline Tensor<float> last_states(const Transformer& transformer,
                                 std::span<const std::int32_t> tokens) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  const StackActivations activations(transformer.specification(), 1, count, Keep::one_block);
  transformer.forward(View<const std::int32_t>(tokens.data(), {1, count}),
                      {.sequences = {1, count}}, activations);
  Tensor<float> states(activations.final_norm().shape());
  kernels::copy(activations.final_norm(), states);
  return states;
}

// Logits (T, V) of a whole sequence, without a cache.
inline Tensor<float> full_logits(const Transformer& transformer,
                                 std::span<const std::int32_t> tokens) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  const StackActivations activations(transformer.specification(), 1, count, Keep::one_block);
  transformer.forward(View<const std::int32_t>(tokens.data(), {1, count}),
                      {.sequences = {1, count}}, activations);
  Tensor<float> logits(Shape{count, transformer.specification().vocabulary_size});
  transformer.project(activations.final_norm(), logits);
  return logits;
}

}  // namespace heed::testing
