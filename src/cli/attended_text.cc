#include <fmt/format.h>

#include "cli/attend.h"
#include "cli/terminal/text.h"

namespace heed::cli {

AttendedText::AttendedText(const LoadedModel& loaded, std::vector<std::int32_t> ids)
    : model(loaded),
      tokens(std::move(ids)),
      bytes(loaded.token_bytes(tokens)),
      capture(trace_patterns(loaded.gpt, tokens)),
      patterns(patterns_of(capture, loaded.gpt.config().layers)) {}

std::string AttendedText::label(std::int64_t position, int width) const {
  return fit(visible(bytes[position]), width);
}

std::string AttendedText::described(std::int64_t position) const {
  for (const TextWord& word : words_of(bytes)) {
    if (position < word.begin || position >= word.end) continue;
    if (word.end - word.begin == 1) return "“" + visible(word.text) + "”";
    return fmt::format("{} (of “{}”)", label(position, 16), visible(word.text));
  }
  return label(position, 16);
}

std::string habit_text(const HeadStatistics& statistics) {
  const HeadHabitStrength habit = strongest_habit(statistics);
  switch (habit.habit) {
    case HeadHabit::first: return "first " + percent(habit.strength);
    case HeadHabit::self: return "self " + percent(habit.strength);
    case HeadHabit::previous: return "prev " + percent(habit.strength);
    case HeadHabit::even: return "even " + percent(habit.strength);
    case HeadHabit::far: break;
  }
  return fmt::format("{:.1f} back", habit.strength);
}

}  // namespace heed::cli
