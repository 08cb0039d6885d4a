#include "microscope/reading.h"

#include "base/error.h"

namespace heed {

void require_readable(const GptConfig& config, std::span<const std::int32_t> tokens) {
  require(!tokens.empty(), ErrorCode::invalid_argument, "there are no tokens to read");
  require(std::ssize(tokens) <= config.context, ErrorCode::invalid_argument,
          "the text has {} tokens, more than the model's context of {}", tokens.size(),
          config.context);
}

GptActivations read_text(const Gpt& gpt, std::span<const std::int32_t> tokens, Probe& probe,
                         Keep keep) {
  require_readable(gpt.config(), tokens);
  const auto positions = std::ssize(tokens);
  GptActivations activations(gpt.config(), 1, positions, keep);
  gpt.forward({tokens.data(), {1, positions}}, {.positions = positions, .probe = &probe},
              activations);
  return activations;
}

}  // namespace heed
