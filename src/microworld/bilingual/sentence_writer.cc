#include "microworld/bilingual/sentence_writer.h"

#include <array>
#include <cmath>
#include <utility>

#include "microworld/bilingual/german.h"

namespace heed::microworld::bilingual {
namespace {

bool is_mark(std::string_view word) { return word == "," || word == "." || word == "?"; }

}  // namespace

std::size_t SentenceWriter::choose(const Choice& choice) {
  const std::size_t option = chooser_.choose(choice);
  if (!chooser_.alive()) throw DeadEnd{};
  log_probability_ += std::log(choice.probability(option));
  return option;
}

bool SentenceWriter::chance(double probability) {
  if (probability <= 0.0) return false;
  if (probability >= 1.0) return true;
  const std::array<double, 2> weights = {1.0 - probability, probability};
  return choose(weights) == 1;
}

std::string SentenceWriter::with_space(std::string_view word) const {
  if (sentence_.words.empty()) return capitalised(word);
  return (is_mark(word.substr(0, 1)) ? "" : " ") + std::string(word);
}

std::size_t SentenceWriter::choose_text(std::span<const std::string> options) {
  std::vector<std::string> texts;
  texts.reserve(options.size());
  for (const std::string& option : options) texts.push_back(with_space(option));
  const std::vector<std::string_view> beginnings(texts.begin(), texts.end());
  return choose({.count = options.size(), .beginnings = beginnings});
}

void SentenceWriter::write(Word word) {
  const std::string text = with_space(word.text);
  chooser_.wrote(text);
  if (!chooser_.alive()) throw DeadEnd{};
  if (sentence_.words.empty()) word.text = text;
  sentence_.text += text;
  const Span span{sentence_.text.size() - word.text.size(), sentence_.text.size()};
  sentence_.words.push_back({std::move(word), span});
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    if (space != 0) words.push_back(text.substr(0, space));
    if (space == std::string_view::npos) break;
    text.remove_prefix(space + 1);
  }
  return words;
}

}  // namespace heed::microworld::bilingual
