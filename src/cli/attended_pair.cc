#include <fmt/format.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/pair_attend.h"
#include "cli/pair_command.h"
#include "cli/terminal/text.h"

namespace heed::cli {
namespace {

std::vector<std::string> unit_names(const std::vector<std::string>& bytes,
                                    const std::vector<TextWord>& words, MapUnit unit) {
  if (unit == MapUnit::tokens) return bytes;
  std::vector<std::string> names;
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

AttendedPair::AttendedPair(const PairModel& loaded, PairTexts texts,
                           std::shared_ptr<Interventions> editor)
    : model(loaded),
      is_translation(texts.is_translation),
      pass(*loaded.model, std::move(texts.tokens), std::move(editor)),
      source_bytes(model.token_bytes(PairSide::source, pass.texts().source)),
      target_bytes(model.token_bytes(PairSide::target, pass.texts().target)),
      source_words(model.words(PairSide::source, pass.texts().source)),
      target_words(model.words(PairSide::target, pass.texts().target)) {}

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
