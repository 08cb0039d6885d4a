#include "microscope/trace.h"

#include "base/error.h"

namespace heed {

Capture trace(const Gpt& gpt, std::span<const std::int32_t> tokens, std::vector<Site> sites) {
  require(!tokens.empty(), ErrorCode::invalid_argument, "there are no tokens to read");
  const auto positions = static_cast<std::int64_t>(tokens.size());
  require(positions <= gpt.config().context, ErrorCode::invalid_argument,
          "the text has {} tokens, more than the model's context of {}", positions,
          gpt.config().context);
  Capture capture(std::move(sites));
  const GptActivations activations(gpt.config(), 1, positions, Keep::one_block);
  gpt.forward({tokens.data(), {1, positions}}, {.positions = positions, .probe = &capture},
              activations);
  return capture;
}

Capture trace_patterns(const Gpt& gpt, std::span<const std::int32_t> tokens) {
  std::vector<Site> sites;
  for (std::int64_t layer = 0; layer < gpt.config().layers; ++layer) {
    sites.push_back({Point::pattern, layer});
  }
  return trace(gpt, tokens, std::move(sites));
}

std::vector<View<const float>> patterns_of(const Capture& capture, std::int64_t layers) {
  std::vector<View<const float>> patterns;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    patterns.push_back(capture.at({Point::pattern, layer}).view()[0]);
  }
  return patterns;
}

}  // namespace heed
