// Operations of the public facade's models.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/loaded_model.h"
#include "generate/generator.h"
#include "heed/attention.h"
#include "heed/heed.h"

namespace heed {

// Logits (V) of the next token, and (T, V) of the token after every position.
Array next_logits(const LoadedModel& model, std::span<const std::int32_t> tokens);
Array all_logits(const LoadedModel& model, std::span<const std::int32_t> tokens);

// The output (T, C) of the final norm.
Array final_states(const LoadedModel& model, std::span<const std::int32_t> tokens);

// As Model::predict(), from logits (V) of the next token.
std::vector<Model::Next> next_tokens(const LoadedModel& model, std::span<const float> logits,
                                     std::span<const std::int32_t> tokens,
                                     const SamplingOptions& sampling, std::size_t max_count);

// The options of a generation, but for its stop flag, editor and probe.
GenerateOptions generation_options(const LoadedModel& model, const Model::GenerateOptions& options);

// As Model::generate().
Model::Generation continue_prompt(const LoadedModel& model, std::span<const std::int32_t> prompt,
                                  const Model::GenerateOptions& options,
                                  const Model::TextCallback& callback);

}  // namespace heed
