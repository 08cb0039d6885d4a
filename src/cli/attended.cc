// What the views of attention show: a text, or a source and a target.
#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "cli/attend.h"
#include "cli/output.h"
#include "cli/terminal/text.h"
#include "engine/views/token_json.h"

namespace heed::cli {

namespace {

std::vector<std::string> unit_names(const std::vector<std::string>& bytes,
                                    const std::vector<TextWord>& words, MapUnit unit) {
  std::vector<std::string> names;
  if (unit == MapUnit::tokens) {
    for (const std::string& token : bytes) names.push_back(named_bytes(token));
    return names;
  }
  for (const TextWord& word : words) names.push_back(word.text);
  return names;
}

void print_text_line(std::string_view title, const std::vector<TextWord>& words,
                     std::string_view note, const Screen& screen) {
  std::string text;
  for (const TextWord& word : words) text += (text.empty() ? "" : " ") + visible(word.text);
  const int indent = 10;
  bool is_first = true;
  for (const std::string& line : wrap(text, std::max(screen.width() - indent - 2, 20))) {
    print("  " + screen.ink.quiet(pad_right(is_first ? title : "", indent - 2)) + line + "\n");
    is_first = false;
  }
  if (!note.empty()) print(std::string(indent, ' ') + screen.ink.quiet(note) + "\n");
}

}  // namespace

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
      patterns(loaded.transformer.specification().layers) {
  std::vector<Point> points;
  for (const std::int64_t layer : kept_layers) points.push_back({PointKind::pattern, layer});
  if (points.empty()) return;
  capture = trace(loaded.transformer, tokens, points);
  for (const Point& point : points) patterns[point.layer] = capture.at(point).view()[0];
}

std::string AttendedText::label(std::int64_t position, int width) const {
  return fit(visible(named_bytes(bytes[position])), width);
}

bool splits_characters(std::span<const std::string> tokens) {
  return std::ranges::any_of(tokens,
                             [](const std::string& token) { return !is_valid_utf8(token); });
}

std::string AttendedText::described(std::int64_t position) const {
  for (const TextWord& word : text_words(model, tokens)) {
    if (position < word.begin || position >= word.end) continue;
    if (word.end - word.begin == 1) return "“" + visible(word.text) + "”";
    return fmt::format("{} (of “{}”)", label(position, 16), visible(word.text));
  }
  return label(position, 16);
}

AttendedSite AttendedText::site() const {
  const Architecture& architecture = model.transformer.architecture();
  return {attention_scope(architecture, only_site), attention_of(architecture, only_site), tokens};
}

HeadHabitStrength AttendedSite::habit(View<const float> pattern, std::int64_t layer) const {
  return strongest_habit(head_statistics(pattern, attention.window(layer), tokens, scope));
}

std::string habit_text(const HeadHabitStrength& habit) {
  if (habit.habit == HeadHabit::back) return fmt::format("{:.1f} back", habit.strength);
  const std::string_view name =
      habit.habit == HeadHabit::previous ? "prev" : habit_name(habit.habit);
  return fmt::format("{} {}", name, percent(habit.strength));
}

AttendedPair::AttendedPair(const LoadedModel& loaded, ModelTexts texts,
                           std::shared_ptr<Interventions> editor)
    : model(loaded),
      is_translation(texts.is_translation),
      pass(loaded.transformer, std::move(texts.tokens), std::move(editor)),
      source_bytes(model.token_bytes(pass.texts().source, PairSide::source)),
      target_bytes(model.token_bytes(pass.texts().target)),
      source_words(text_units(model, pass.texts().source, PairSide::source)),
      target_words(text_units(model, pass.texts().target)) {}

AttendedSite AttendedPair::site(AttentionSite kind) const {
  const Architecture& architecture = pass.architecture();
  const Texts& texts = pass.texts();
  const AttentionScope scope = attention_scope(architecture, kind);
  std::span<const std::int32_t> tokens;
  if (scope != AttentionScope::other_text) {
    tokens = kind == encoder_site ? texts.source : texts.target;
  }
  return {scope, attention_of(architecture, kind), tokens};
}

std::vector<std::string> AttendedPair::query_names(AttentionSite kind, MapUnit unit) const {
  return kind == encoder_site ? unit_names(source_bytes, source_words, unit)
                              : unit_names(target_bytes, target_words, unit);
}
std::vector<std::string> AttendedPair::key_names(AttentionSite kind, MapUnit unit) const {
  return kind == decoder_site ? unit_names(target_bytes, target_words, unit)
                              : unit_names(source_bytes, source_words, unit);
}

void print_pair_texts(const AttendedPair& pair, const Screen& screen) {
  print("\n");
  print_text_line("source", pair.source_words, "", screen);
  print_text_line("target", pair.target_words,
                  pair.is_translation ? "the model's own translation, greedily" : "", screen);
}

std::string_view site_title(AttentionSite site) {
  if (site == cross_site) return "Cross-attention";
  return site == encoder_site ? "Encoder" : "Decoder";
}

std::vector<float> word_weights(AttendedPair& pair, AttentionSite kind,
                                const PairWordChoice& choice, WordRow row) {
  const Architecture& architecture = pair.pass.architecture();
  const std::int64_t layer = choice.layer.value_or(architecture.of(kind.stack).layers - 1);
  const std::int64_t heads = attention_of(architecture, kind).query_heads;
  const std::int64_t first = choice.head.value_or(0), end = choice.head ? first + 1 : heads;
  std::vector<float> sums(pair.key_words(kind).size(), 0.0F);
  for (std::int64_t head = first; head < end; ++head) {
    const Tensor<float> words = by_words(pair.attention.pattern(kind, layer, head),
                                         pair.query_words(kind), pair.key_words(kind), row);
    const std::span<const float> own = words.view()[static_cast<std::int64_t>(choice.word)].span();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += own[i] / static_cast<float>(end - first);
    }
  }
  return sums;
}

}  // namespace heed::cli
