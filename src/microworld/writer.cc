#include "microworld/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "base/error.h"

namespace heed::microworld {

std::size_t Writer::choose(const Choice& choice) {
  const std::size_t option = chooser_.choose(choice);
  story_.log_probability += std::log(choice.probability(option));
  return option;
}

Span Writer::write(std::string_view text) {
  chooser_.wrote(text);
  const std::size_t begin = offset();
  story_.text += text;
  return {begin, offset()};
}

std::size_t Writer::pick(std::span<const std::string_view> texts) {
  const std::size_t option = choose({.count = texts.size(), .beginnings = texts});
  write(texts[option]);
  return option;
}

double Choice::probability(std::size_t option) const {
  if (weights.empty()) return 1.0 / static_cast<double>(count);
  return weights[option] / std::accumulate(weights.begin(), weights.end(), 0.0);
}

std::size_t Sampler::choose(const Choice& choice) {
  check(choice.count > 0, "a choice has options");
  if (choice.weights.empty()) return random_.below(choice.count);
  const double total = std::accumulate(choice.weights.begin(), choice.weights.end(), 0.0);
  double left = random_.uniform() * total;
  for (std::size_t option = 0; option + 1 < choice.count; ++option) {
    left -= choice.weights[option];
    if (left < 0.0) return option;
  }
  return choice.count - 1;
}

std::size_t Replayer::choose(const Choice& choice) {
  check(choice.count > 0, "a choice has options");
  if (!alive_) return 0;
  if (depth_ == options_.size()) {
    std::vector<std::size_t> fitting;
    for (std::size_t option = choice.count; option-- > 0;) {
      if (!choice.weights.empty() && choice.weights[option] <= 0.0) continue;
      if (choice.beginnings.empty() || fits(choice.beginnings[option])) {
        fitting.push_back(option);
      }
    }
    if (fitting.empty()) {
      alive_ = false;
      return 0;
    }
    options_.push_back(std::move(fitting));
  }
  return options_[depth_++].back();
}

void Replayer::wrote(std::string_view text) {
  if (!alive_) return;
  alive_ = text_.substr(position_).starts_with(text);
  position_ += text.size();
}

bool Replayer::next() {
  while (!options_.empty()) {
    options_.back().pop_back();
    if (!options_.back().empty()) break;
    options_.pop_back();
  }
  position_ = 0;
  depth_ = 0;
  alive_ = true;
  return !options_.empty();
}

namespace {

constexpr std::string_view special_characters = "({";

// Index just past the parenthesis that closes the one at text[0].
std::size_t end_of_group(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return i + 1;
  }
  check(false, "every ( in a template has its )");
  return text.size();
}

std::vector<std::string_view> split_alternatives(std::string_view group) {
  std::vector<std::string_view> alternatives;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (group[i] == '(') ++depth;
    if (group[i] == ')') --depth;
    if (group[i] == '|' && depth == 0) {
      alternatives.push_back(group.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  alternatives.push_back(group.substr(begin));
  return alternatives;
}

void say_alternatives(Writer& writer, std::string_view group, const Slots& slots) {
  const std::vector<std::string_view> alternatives = split_alternatives(group);
  std::vector<std::string_view> beginnings;
  for (std::string_view alternative : alternatives) {
    beginnings.push_back(certain_beginning(alternative));
  }
  const std::size_t option =
      writer.choose({.count = alternatives.size(), .beginnings = beginnings});
  say(writer, alternatives[option], slots);
}

void say_slot(Writer& writer, std::string_view name, const Slots& slots) {
  const Slot& slot = slots[name];
  if (const auto* text = std::get_if<std::string_view>(&slot)) {
    say(writer, *text, slots);
  } else {
    std::get<std::function<void(Writer&)>>(slot)(writer);
  }
}

bool starts_with_vowel(std::string_view word) {
  return !word.empty() && std::string_view("aeiou").find(word[0]) != std::string_view::npos;
}

std::string with_article(Article article, std::string_view word) {
  const std::string_view ending = starts_with_vowel(word) ? "n" : "";
  switch (article) {
    case Article::none: break;
    case Article::definite: return fmt::format("the {}", word);
    case Article::indefinite: return fmt::format("a{} {}", ending, word);
    case Article::capital_indefinite: return fmt::format("A{} {}", ending, word);
  }
  return std::string(word);
}

// Chooses one word and writes it after `before`, which may depend on the word; marks the word only.
template <class Before>
std::pair<std::size_t, Span> pick_word(Writer& writer, std::span<const std::string_view> words,
                                       Before&& before) {
  std::vector<std::string> texts;
  for (std::string_view word : words) texts.push_back(before(word));
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const std::size_t option = writer.pick(views);
  return {option, {writer.offset() - words[option].size(), writer.offset()}};
}

constexpr std::array<std::string_view, 12> role_words = {
    "cook",    "gardener", "butler", "doctor", "captain", "poet",
    "painter", "lawyer",   "singer", "nurse",  "teacher", "tailor"};

constexpr std::array<std::string_view, 10> room_words = {"library", "study",   "cellar", "attic",
                                                         "kitchen", "gallery", "chapel", "pantry",
                                                         "parlour", "garden"};

constexpr std::array<std::string_view, 16> thing_words = {
    "jug", "bowl", "lamp",    "clock", "mirror", "box",  "bell", "key",
    "cup", "pipe", "whistle", "comb",  "kettle", "ring", "drum", "spoon"};

constexpr std::array<std::string_view, 8> colour_words = {"red",   "blue",  "green", "yellow",
                                                          "white", "black", "grey",  "brown"};

}  // namespace

void Slots::set(std::string_view name, Slot slot) {
  for (auto& [known, value] : slots_) {
    if (known == name) {
      value = std::move(slot);
      return;
    }
  }
  slots_.emplace_back(name, std::move(slot));
}

const Slot& Slots::operator[](std::string_view name) const {
  for (const auto& [known, value] : slots_) {
    if (known == name) return value;
  }
  fail(ErrorCode::internal, "the template slot {{{}}} has no value", name);
}

std::string_view certain_beginning(std::string_view text) {
  return text.substr(0, text.find_first_of(special_characters));
}

void say(Writer& writer, std::string_view text, const Slots& slots) {
  while (!text.empty() && writer.alive()) {
    const std::string_view plain = certain_beginning(text);
    if (!plain.empty()) {
      writer.write(plain);
      text.remove_prefix(plain.size());
      continue;
    }
    std::size_t end = 0;
    if (text[0] == '(') {
      end = end_of_group(text);
      say_alternatives(writer, text.substr(1, end - 2), slots);
    } else {
      end = text.find('}') + 1;
      check(end > 0, "every { in a template has its }");
      say_slot(writer, text.substr(1, end - 2), slots);
    }
    text.remove_prefix(end);
  }
}

ChosenWords write_noun_phrase(Writer& writer, const NounPhrase& phrase) {
  static constexpr std::array<std::string_view, 3> joins = {" ", ", ", " and "};
  ChosenWords chosen;
  AdjectiveMark mark;
  for (const AdjectiveChoice& adjectives : phrase.adjectives) {
    const bool first = mark.adjectives.empty();
    if (!first && adjectives.join == Join::space) writer.write(" ");
    if (!first && adjectives.join == Join::any) writer.pick(joins);
    const auto [option, span] = pick_word(writer, adjectives.words, [&](std::string_view word) {
      return with_article(first ? phrase.article : Article::none, word);
    });
    chosen.adjectives.push_back(option);
    mark.adjectives.push_back(span);
  }

  std::vector<std::string_view> nouns;
  for (std::string_view noun : phrase.nouns) {
    const bool excluded =
        std::find(phrase.except.begin(), phrase.except.end(), noun) != phrase.except.end();
    if (!excluded) nouns.push_back(noun);
  }
  const auto [option, span] = pick_word(writer, nouns, [&](std::string_view word) {
    return phrase.adjectives.empty() ? with_article(phrase.article, word)
                                     : fmt::format(" {}", word);
  });
  chosen.noun = nouns[option];
  mark.noun = span;
  if (!mark.adjectives.empty() && writer.alive()) writer.story().adjectives.push_back(mark);
  return chosen;
}

void write_tails(Writer& writer, std::vector<std::string_view> tails) {
  EvidenceMark mark{.subject = "adjective"};
  std::vector<Span> adjectives;
  if (writer.alive()) {
    mark.word = writer.story().adjectives.back().noun;
    adjectives = writer.story().adjectives.back().adjectives;
  }
  const char* before = " ";
  while (!tails.empty()) {
    const bool first = !adjectives.empty();
    const std::size_t begin = writer.offset();
    writer.write(before);
    std::vector<std::string_view> beginnings;
    for (std::string_view tail : tails) beginnings.push_back(certain_beginning(tail));
    const std::size_t option = writer.choose({.count = tails.size(), .beginnings = beginnings});
    say(writer, tails[option], {});
    if (first) {
      mark.evidence = {adjectives[option]};
      mark.answer = {begin, writer.offset()};
      writer.story().evidence.push_back(mark);
      adjectives.clear();
    }
    tails.erase(tails.begin() + static_cast<std::ptrdiff_t>(option));
    before = tails.size() == 1 ? " and " : ", ";
  }
}

std::span<const std::string_view> roles() { return role_words; }
std::span<const std::string_view> rooms() { return room_words; }
std::span<const std::string_view> things() { return thing_words; }

const Slots& common_slots() {
  static const Slots slots = {
      {"role", [](Writer& w) { w.pick(role_words); }},
      {"room", [](Writer& w) { w.pick(room_words); }},
      {"thing", [](Writer& w) { w.pick(thing_words); }},
      {"colour", [](Writer& w) { w.pick(colour_words); }},
      {"number_capital", "(Two|Three|Four|Five|Six|Seven|Eight|Nine)"},
      {"number", "(two|three|four|five|six|seven|eight|nine)"},
      {"weekday", "(Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)"},
  };
  return slots;
}

std::string_view WithoutRepeats::write(Writer& writer) {
  const std::size_t option = writer.pick(words_);
  const std::string_view word = words_[option];
  words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(option));
  return word;
}

}  // namespace heed::microworld
