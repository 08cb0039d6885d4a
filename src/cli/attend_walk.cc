// One word's attention in one head, step by step, with the model's own numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/attend.h"
#include "cli/output.h"
#include "cli/terminal/heat_map.h"
#include "cli/terminal/table.h"
#include "cli/terminal/text.h"

namespace heed::cli {
namespace {

constexpr std::size_t max_rows = 40;   // answers listed; of more, those with the largest shares
constexpr std::size_t later_rows = 2;  // masked tokens listed
constexpr int strip_columns = 32;
constexpr std::size_t numbers_shown = 4;

void print_step(int number, std::string_view title, const Screen& screen) {
  print("\n" + screen.ink.paint(fmt::format("{}", number), colour::orange) + "  " +
        screen.ink.bold(title) + "\n");
}

void print_text(std::string_view paragraph, const Screen& screen) {
  for (const std::string& line : wrap(paragraph, screen.width() - 3)) {
    print("   " + screen.ink.quiet(line) + "\n");
  }
}

// "   q (32)  ▇▇▇▇▇…  0.312 -1.204 0.051 …  length 4.20"
void print_vector(std::string_view name, const std::vector<float>& vector, const Screen& screen) {
  const bool cut = vector.size() > static_cast<std::size_t>(strip_columns);
  const std::string strip = signed_strip(vector, strip_columns - (cut ? 1 : 0), screen.ink);
  std::string line = "   " + pad_right(fmt::format("{} ({})", name, vector.size()), 18);
  if (!strip.empty()) line += strip + "  ";
  const std::size_t count = screen.ink.has_colours() ? 1 : numbers_shown;
  for (std::size_t i = 0; i < std::min(count, vector.size()); ++i) {
    line += fmt::format("{:.3f} ", vector[i]);
  }
  if (vector.size() > count) line += "… ";
  print(line + screen.ink.quiet(fmt::format(" norm {}", short_number(length(vector)))) + "\n");
}

// The answers to list, in the order of the text, without those that only add little.
std::vector<const KeyAnswer*> listed_answers(const WordWalk& walk) {
  std::vector<const KeyAnswer*> answers;
  for (const KeyAnswer& answer : walk.answers) {
    if (!answer.masked) answers.push_back(&answer);
  }
  if (answers.size() > max_rows) {
    std::ranges::stable_sort(answers, std::greater{}, &KeyAnswer::share);
    answers.resize(max_rows);
    std::ranges::sort(answers, {}, &KeyAnswer::position);
  }
  return answers;
}

void print_answers(const AttendedTexts& text, const WordWalk& walk, const Screen& screen) {
  const Ink& ink = screen.ink;
  const int bar_width = std::clamp(screen.width() - 68, 8, 24);
  Table table({{"", Align::right},
               {"token", Align::left},
               {"q·k", Align::right},
               {fmt::format("÷√{}", walk.head_size), Align::right},
               {"softmax", Align::right},
               {"", Align::left},
               {"|v|", Align::right},
               {"adds", Align::right}});
  const auto listed = listed_answers(walk);
  const auto clearest = std::ranges::max_element(walk.answers, {}, &KeyAnswer::share);
  double listed_share = 0;
  for (const KeyAnswer* answer : listed) {
    listed_share += answer->share;
    const bool is_clearest = answer->position == clearest->position;
    const std::string name = text.label(answer->position, 16);
    table.add({ink.quiet(std::to_string(answer->position)), is_clearest ? ink.bold(name) : name,
               short_number(answer->product), short_number(answer->scaled), percent(answer->share),
               ink.paint(pad_right(bar(answer->share, bar_width), bar_width),
                         is_clearest ? colour::orange : colour::blue),
               short_number(answer->value_length), short_number(answer->contribution_length)});
  }
  const auto seen = static_cast<std::size_t>(
      std::ranges::count_if(walk.answers, [](const KeyAnswer& answer) { return !answer.masked; }));
  if (seen > listed.size()) {
    table.add_line(ink.quiet(fmt::format("… {} more {}tokens, {} together", seen - listed.size(),
                                         text.is_causal() ? "earlier " : "",
                                         percent(std::max(0.0, 1 - listed_share)))));
  }
  // An encoder masks nothing.
  const auto after = static_cast<std::size_t>(walk.position + 1);
  const std::size_t later = text.is_causal() ? walk.answers.size() - after : 0;
  for (std::size_t i = 0; i < std::min(later, later_rows); ++i) {
    const KeyAnswer& answer = walk.answers[after + i];
    table.add({ink.quiet(std::to_string(answer.position)),
               ink.quiet(text.label(answer.position, 16)), ink.quiet(short_number(answer.product)),
               ink.quiet("−∞"), ink.quiet("0 %"), ink.quiet("masked"), "", ""});
  }
  if (later > later_rows) {
    table.add_line(ink.quiet(
        fmt::format("… {} more later tokens, also masked: −∞ before the softmax, 0 % after",
                    later - later_rows)));
  }
  print(table.text(ink));
}

std::string token_list(const AttendedTexts& text, const TextWord& word) {
  std::string list;
  for (std::int64_t i = word.begin; i < word.end; ++i)
    list += (i > word.begin ? " " : "") + text.label(i, 16);
  return list;
}

}  // namespace

void print_word_walk(const AttendedTexts& text, const TextWord& word, const WordWalk& walk,
                     const HeadToShow& shown, const Screen& screen) {
  const Ink& ink = screen.ink;
  const std::string here = text.label(walk.position, 16);
  print("\n" +
        ink.title(fmt::format("“{}” in block {}, head {}", word.text, walk.layer, walk.head)) +
        ink.quiet("  (counted from 0)\n"));
  if (const std::string why = why_shown(text, shown); !why.empty()) print_text(why, screen);
  if (word.end - word.begin > 1) {
    const char* const why = text.is_causal()
                                ? "Only the last one has seen the whole word, so the numbers are"
                                : "Each of them sees the whole text; the numbers are";
    print_text(fmt::format("The word is {} tokens, {}. {} those of {}, at position {}.",
                           word.end - word.begin, token_list(text, word), why, here, walk.position),
               screen);
  }

  print_step(1, "Query", screen);
  const bool is_post_norm = text.model.transformer.specification().is_post_norm();
  print_text(fmt::format("The {}residual stream at this position, times the head's query matrix.",
                         is_post_norm ? "" : "normalised "),
             screen);
  print_vector("q", walk.query, screen);

  print_step(2, "Scores, softmax and values", screen);
  print_text(fmt::format("The query is multiplied with the key of each token (k, {0} numbers). The "
                         "scores, q·k / √{0} with √{0} = {1:.2f}, become weights that sum to one "
                         "(softmax). Each token adds its value (v) times its weight.",
                         walk.head_size, std::sqrt(static_cast<double>(walk.head_size))),
             screen);
  print("\n");
  print_answers(text, walk, screen);

  print_step(3, "The head's output: the weighted sum of the values", screen);
  print_vector("z", walk.output, screen);

  print_step(4, fmt::format("Concatenated with the outputs of the other {} heads", walk.heads - 1),
             screen);
  print_vector("concat", walk.concatenation, screen);
  print_text(fmt::format("Numbers {} to {} are this head's.", walk.head * walk.head_size,
                         (walk.head + 1) * walk.head_size - 1),
             screen);

  print_step(5, "Projected and added to the residual stream", screen);
  print_vector("this head", walk.head_projection, screen);
  print_vector("all + bias", walk.attention_out, screen);
  print_vector("before", walk.residual_before, screen);
  print_vector("after", walk.residual_after, screen);
  if (is_post_norm) print_text("A norm of this sum is what the feed-forward layer reads.", screen);

  const auto clearest = std::ranges::max_element(walk.answers, {}, &KeyAnswer::share);
  print("\n");
  print_text(fmt::format("In short: “{}” attends most to {}, with weight {}.", word.text,
                         text.described(clearest->position), percent(clearest->share)),
             screen);
}

}  // namespace heed::cli
