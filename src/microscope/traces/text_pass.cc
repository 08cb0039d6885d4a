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
bool is_head_input(PointKind kind) {
  return kind == PointKind::attention_in || kind == PointKind::query_input ||
         kind == PointKind::key_input || kind == PointKind::value_input;
}

}  // namespace

void require_gradients_past(const Editor* editor, const Architecture& architecture,
                            const std::function<bool(const Point&)>& wanted) {
  if (editor == nullptr) return;
  std::optional<Point> asked;
  for (const Point& point : all_points(architecture)) {
    const bool passes = !is_head_input(point.kind) && editor->only_adds(point);
    require(!asked || !editor->edits(point) || passes, ErrorCode::unsupported,
            "the gradient at {} would have to pass through the intervention at {}: gradients pass "
            "only through added vectors, and not at the inputs of heads; request points after the "
            "intervention",
            point_name(asked.value_or(point)), point_name(point));
    if (!asked && wanted(point)) asked = point;
  }
}

StackActivations run_text(const Transformer& gpt, std::span<const std::int32_t> tokens,
                          Probe& probe, Keep keep) {
  require_text_fits(gpt.specification(), tokens);
  const auto positions = std::ssize(tokens);
  StackActivations activations(gpt.specification(), 1, positions, keep);
  gpt.forward({tokens.data(), {1, positions}}, {.sequences = {1, positions}, .probe = &probe},
              activations);
  return activations;
}

}  // namespace heed
