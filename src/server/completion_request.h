// What POST /v1/completions asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "server/exchange.h"
#include "server/prompts.h"
#include "server/sequence.h"

namespace heed::server {

struct CompletionLimits {
  PromptLimits prompts{};
  std::int64_t max_tokens = 0;   // of each choice
  std::int64_t choices = 128;    // `n` and `best_of`
  std::int64_t sequences = 256;  // prompts times candidates
};

struct CompletionRequest {
  std::vector<std::vector<std::int32_t>> prompts;
  std::int64_t choices = 1;     // of each prompt: `n`
  std::int64_t candidates = 1;  // that the choices are the best of: `best_of`
  bool echoes = false;
  bool streams = false;
  bool streams_usage = false;
  std::optional<std::int64_t> log_probabilities;  // so many likeliest at each place
  SequenceOptions sequence;                       // of every choice, but for prompt and seed

  // Choice `index` of a prompt is drawn as a lone request with this seed would be.
  std::uint64_t seed_of(std::int64_t index) const {
    return sequence.sampling.seed + static_cast<std::uint64_t>(index);
  }
};

// Throws Error{invalid_argument} or HttpError.
CompletionRequest read_completion_request(const Json& body, const LoadedModel& model,
                                          const CompletionLimits& limits);

}  // namespace heed::server
