// One word of a pair of texts: of the target, through its own past and into the source.
#include <fmt/format.h>

#include <algorithm>

#include "cli/attend.h"
#include "cli/output.h"
#include "cli/terminal/table.h"
#include "cli/terminal/text.h"
#include "microscope/intervene/pair_effects.h"

namespace heed::cli {
namespace {

constexpr std::size_t max_words = 24;  // listed; of more, those with the largest weights
constexpr int widest_word = 18;
constexpr int heads_per_line = 4;

std::string heads_text(const PairWordChoice& choice, std::int64_t layer, std::int64_t heads) {
  return choice.head ? fmt::format("block {}, head {}", layer, *choice.head)
                     : fmt::format("block {}, mean of {} heads", layer, heads);
}

// Words with their weights as bars, in the order of the text.
void print_weights(const std::vector<TextWord>& words, const std::vector<float>& weights,
                   std::size_t visible_words, const Screen& screen) {
  std::vector<std::size_t> listed;
  for (std::size_t i = 0; i < visible_words; ++i) listed.push_back(i);
  if (listed.size() > max_words) {
    std::ranges::stable_sort(listed, std::greater{}, [&](std::size_t i) { return weights[i]; });
    listed.resize(max_words);
    std::ranges::sort(listed);
  }
  const auto largest = std::ranges::max_element(weights) - weights.begin();
  const int bar_width = std::clamp(screen.width() - widest_word - 20, 12, 48);
  int name_width = 0;
  for (const std::size_t i : listed) {
    name_width = std::max(name_width, display_width(fit(visible(words[i].text), widest_word)));
  }
  for (const std::size_t i : listed) {
    const bool is_largest = static_cast<std::ptrdiff_t>(i) == largest;
    const std::string name = pad_right(fit(visible(words[i].text), widest_word), name_width);
    print("    " + (is_largest ? screen.ink.bold(name) : name) + "  " +
          screen.ink.paint(pad_right(bar(weights[i], bar_width), bar_width),
                           is_largest ? colour::orange : colour::blue) +
          " " + pad_left(percent(weights[i]), 5) + "\n");
  }
  if (listed.size() < visible_words) {
    print(
        "    " +
        screen.ink.quiet(fmt::format("… {} more words with less", visible_words - listed.size())) +
        "\n");
  }
}

void print_section(std::string_view title, std::string_view note, const Screen& screen) {
  print("\n  " + screen.ink.bold(title) + screen.ink.quiet("  " + std::string(note)) + "\n");
}

// What each head of every layer of a kind attends to most at the word.
void print_every_head(const AttendedTexts& pair, AttentionSite kind, const PairWordChoice& choice,
                      WordRow row, const Screen& screen) {
  const Architecture& architecture = pair.pass.architecture();
  const std::int64_t heads = attention_of(architecture, kind).query_heads;
  const int width = std::max(16, (screen.width() - 10) / heads_per_line);
  for (std::int64_t layer = 0; layer < architecture.of(kind.stack).layers; ++layer) {
    std::string line;
    for (std::int64_t head = 0; head < heads; ++head) {
      PairWordChoice of_head = choice;
      of_head.layer = layer;
      of_head.head = head;
      const std::vector<float> weights = word_weights(pair, kind, of_head, row);
      const auto best = std::ranges::max_element(weights);
      const std::string name = fit(
          visible(pair.words(pair.key_side(kind))[static_cast<std::size_t>(best - weights.begin())]
                      .text),
          width - 12);
      line += pad_right(screen.ink.quiet(fmt::format("H{} ", head)) + name + " " +
                            screen.ink.quiet(percent(*best)),
                        width);
      if ((head + 1) % heads_per_line == 0 || head + 1 == heads) {
        print("    " + pad_right(head < heads_per_line ? fmt::format("L{}", layer) : "", 5) + line +
              "\n");
        line.clear();
      }
    }
  }
}

void print_word_prediction(const AttendedTexts& pair, const TextWord& word, const Screen& screen) {
  if (word.begin == 0) return;
  const std::vector<double> next = pair.pass.next_probabilities(word.begin - 1);
  const std::int32_t token = pair.pass.texts().target[static_cast<std::size_t>(word.begin)];
  const auto best = std::ranges::max_element(next);
  const auto likeliest = static_cast<std::int32_t>(best - next.begin());
  const auto name = [&](std::int32_t id) { return visible(pair.model.token_bytes(id)); };
  std::string text = fmt::format(
      "Before it, the decoder gives its first token {} a probability of "
      "{}",
      name(token), percent(next[static_cast<std::size_t>(token)]));
  text += likeliest == token
              ? "; no other token has more."
              : fmt::format("; {} has the most, {}.", name(likeliest), percent(*best));
  print("\n");
  for (const std::string& line : wrap(text, screen.width() - 2)) {
    print("  " + screen.ink.quiet(line) + "\n");
  }
}

}  // namespace

void print_pair_word(const AttendedTexts& pair, const PairWordChoice& choice,
                     const Screen& screen) {
  const Architecture& architecture = pair.pass.architecture();
  const bool is_source = choice.side == PairSide::source;
  const TextWord& word = pair.words(choice.side)[choice.word];
  print_texts(pair, screen);
  print("\n" +
        screen.ink.title(
            fmt::format("“{}” in the {}", visible(word.text), is_source ? "source" : "target")) +
        screen.ink.quiet(
            fmt::format("  word {}, {}\n", choice.word, counted(word.end - word.begin, "token"))));
  const auto note = [&](AttentionSite kind) {
    const std::int64_t layer = choice.layer.value_or(architecture.of(kind.stack).layers - 1);
    return heads_text(choice, layer, attention_of(architecture, kind).query_heads);
  };
  if (is_source) {
    print_section("The source around it", "encoder, " + note(encoder_site), screen);
    print_weights(pair.source_words, word_weights(pair, encoder_site, choice, WordRow::read),
                  pair.source_words.size(), screen);
    print_section("Every head of the encoder", "the word with the largest weight", screen);
    return print_every_head(pair, encoder_site, choice, WordRow::read, screen);
  }
  // The rows that write the word see only what comes before it.
  const bool has_past = word.begin > 0;
  print_section("Its own past", "decoder, " + note(decoder_site), screen);
  print_weights(pair.target_words, word_weights(pair, decoder_site, choice, WordRow::written),
                has_past ? choice.word : 1, screen);
  print_section("The source", "cross-attention, " + note(cross_site), screen);
  print_weights(pair.source_words, word_weights(pair, cross_site, choice, WordRow::written),
                pair.source_words.size(), screen);
  print_section("Every head of cross-attention", "the word with the largest weight", screen);
  print_every_head(pair, cross_site, choice, WordRow::written, screen);
  print_word_prediction(pair, word, screen);
  if (has_past) {
    print("  " + screen.ink.quiet("Weights are those of the positions that write the word.") +
          "\n");
  }
}

void print_pair_changes(const AttendedTexts& pair, const std::string& summary,
                        const Screen& screen) {
  const RecordedPass unedited(pair.model.transformer, pair.pass.texts(), nullptr,
                              {.keep = Keep::one_block});
  print_texts(pair, screen);
  print("\n" + screen.ink.title("What changes") + screen.ink.quiet("  " + summary) + "\n\n");
  Table table({{"", Align::right},
               {"next token", Align::left},
               {"before", Align::right},
               {"after", Align::right},
               {"moved", Align::right},
               {"", Align::left}});
  const std::vector<PredictionEffect> effects = prediction_effects(unedited, pair.pass);
  for (std::size_t t = 0; t < effects.size(); ++t) {
    const PredictionEffect& effect = effects[t];
    const std::string name =
        effect.next ? fit(visible(pair.target_bytes[t + 1]), 20) : "after the last";
    table.add({screen.ink.quiet(std::to_string(t)), effect.next ? name : screen.ink.quiet(name),
               effect.next ? percent(effect.before) : "", effect.next ? percent(effect.after) : "",
               percent(effect.moved),
               screen.ink.paint(pad_right(bar(effect.moved, 20), 20), colour::orange)});
  }
  print(table.text(screen.ink));
  // Changed models may never write an end.
  const std::int64_t max_length = 2 * std::max(pair.pass.positions(), pair.pass.sources()) + 8;
  const auto translation = [&](Editor* editor) {
    return pair.model.target_text(translate_greedily(pair.model.transformer,
                                                     pair.pass.texts().source,
                                                     {.max_length = max_length, .editor = editor})
                                      .tokens);
  };
  print("\n");
  const std::string before = translation(nullptr), after = translation(pair.pass.editor().get());
  const auto print_translation = [&](std::string_view title, const std::string& text) {
    bool is_first = true;
    for (const std::string& line : wrap(printable_lines(text), screen.width() - 28)) {
      print("  " + screen.ink.quiet(pad_right(is_first ? title : "", 24)) + line + "\n");
      is_first = false;
    }
  };
  print_translation("translated before", before);
  print_translation("translated with changes", after == before ? "the same" : after);
}

}  // namespace heed::cli
