#include "microscope/traces/text_pass.h"

#include <optional>

#include "base/error.h"
#include "model/input_checks.h"

namespace heed {

std::int64_t position_in_text(std::int64_t position, std::int64_t positions) {
  if (position == -1) position = positions - 1;
  require(position >= 0 && position < positions, ErrorCode::invalid_argument,
          "position {} is not in a text of {} tokens", position, positions);
  return position;
}

namespace {

// Backward normalises the stream itself, not the copies of it that heads with an edited input read.
bool is_head_input(Point point) {
  return point == Point::attention_in || point == Point::query_input || point == Point::key_input ||
         point == Point::value_input;
}

}  // namespace

void require_gradients_past(const Editor* editor, const GptConfig& config,
                            const std::function<bool(const Site&)>& wanted) {
  if (editor == nullptr) return;
  std::optional<Site> asked;
  for (const Site& site : all_sites(config.layers)) {
    const bool passes = !is_head_input(site.point) && editor->only_adds(site);
    require(!asked || !editor->edits(site) || passes, ErrorCode::unsupported,
            "the gradient at {} would go back through the intervention at {}, and gradients pass "
            "only where vectors are added, and not at the inputs of heads; ask for points from "
            "there on",
            site_name(asked.value_or(site)), site_name(site));
    if (!asked && wanted(site)) asked = site;
  }
}

GptActivations run_text(const Gpt& gpt, std::span<const std::int32_t> tokens, Probe& probe,
                        Keep keep) {
  require_text_fits(gpt.config(), tokens);
  const auto positions = std::ssize(tokens);
  GptActivations activations(gpt.config(), 1, positions, keep);
  gpt.forward({tokens.data(), {1, positions}}, {.positions = positions, .probe = &probe},
              activations);
  return activations;
}

}  // namespace heed
