#include <fmt/format.h>

#include "cli/attend.h"
#include "cli/pair_attend.h"
#include "cli/terminal/text.h"
#include "engine/views/token_json.h"

namespace heed::cli {

std::vector<std::int64_t> all_layers(const StackSpecification& config) {
  std::vector<std::int64_t> layers;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) layers.push_back(layer);
  return layers;
}

AttendedText::AttendedText(const LoadedModel& loaded, std::vector<std::int32_t> ids,
                           const std::vector<std::int64_t>& kept_layers)
    : model(loaded),
      tokens(std::move(ids)),
      bytes(loaded.token_bytes(tokens)),
      capture(std::vector<Point>{}),
      patterns(loaded.gpt.specification().layers) {
  std::vector<Point> points;
  for (const std::int64_t layer : kept_layers) points.push_back({PointKind::pattern, layer});
  if (points.empty()) return;
  capture = trace(loaded.gpt, tokens, points);
  for (const Point& point : points) patterns[point.layer] = capture.at(point).view()[0];
}

std::string AttendedText::label(std::int64_t position, int width) const {
  return fit(visible(bytes[position]), width);
}

std::string AttendedText::described(std::int64_t position) const {
  for (const TextWord& word : text_words(model, tokens)) {
    if (position < word.begin || position >= word.end) continue;
    if (word.end - word.begin == 1) return "“" + visible(word.text) + "”";
    return fmt::format("{} (of “{}”)", label(position, 16), visible(word.text));
  }
  return label(position, 16);
}

HeadHabitStrength AttendedText::habit(View<const float> pattern, std::int64_t layer) const {
  if (!is_causal()) {
    return strongest_habit(pair_head_statistics(pattern, encoder_site));
  }
  const std::int64_t window = model.gpt.specification().block.attention.window(layer);
  return strongest_habit(head_statistics(pattern, window, tokens));
}

std::string habit_text(const HeadHabitStrength& habit) {
  if (habit.habit == HeadHabit::back) return fmt::format("{:.1f} back", habit.strength);
  const std::string_view name =
      habit.habit == HeadHabit::previous ? "prev" : habit_name(habit.habit);
  return fmt::format("{} {}", name, percent(habit.strength));
}

}  // namespace heed::cli
