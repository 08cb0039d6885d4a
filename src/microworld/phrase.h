// Text generation: templates with alternatives and slots, and noun phrases with adjectives.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "microworld/writer.h"

namespace heed::microworld {

// What stands for {name} in a template: another template, or a procedure that writes.
using Slot = std::variant<std::string_view, std::function<void(Writer&)>>;

// Slots by name. A later set() of the same name replaces the earlier one.
class Slots {
 public:
  Slots() = default;
  Slots(std::initializer_list<std::pair<std::string_view, Slot>> slots) : slots_(slots) {}

  void set(std::string_view name, Slot slot);
  const Slot& operator[](std::string_view name) const;

 private:
  std::vector<std::pair<std::string_view, Slot>> slots_;
};

// Writes a template: plain text, (one|or|another) with all alternatives equally likely, and {slot}.
// Alternatives nest and may be empty.
void say(Writer& writer, std::string_view text, const Slots& slots);

// The common prefix of all expansions of `text`.
std::string_view certain_beginning(std::string_view text);

enum class Article { none, indefinite, capital_indefinite, definite };

// How an adjective joins the one before it: a colour by a space; other adjectives also by a comma
// or "and".
enum class Join { space, any };

struct AdjectiveChoice {
  std::span<const std::string_view> words;
  Join join = Join::any;
};

struct NounPhrase {
  Article article = Article::indefinite;
  std::vector<AdjectiveChoice> adjectives;  // one is chosen from each, in order
  std::span<const std::string_view> nouns;
  std::vector<std::string_view> except = {};  // nouns that must not come again
};

struct ChosenWords {
  std::vector<std::size_t> adjectives;  // index of each adjective within its list
  std::string_view noun;
};

// Writes the phrase with the right article and records an AdjectiveMark.
ChosenWords write_noun_phrase(Writer& writer, const NounPhrase& phrase);

// Writes what the adjectives of the noun phrase just written say of it, directly after it and in
// any order: " soft as moss", or " soft as moss and dark as ink". `tails` are templates, one for
// each adjective. The first tail gets an EvidenceMark of its adjective.
void write_tails(Writer& writer, std::vector<std::string_view> tails);

// Words that all kinds of stories share. Sharing keeps the vocabulary small while every story still
// has many free choices.
std::span<const std::string_view> roles();   // cook, gardener, ...
std::span<const std::string_view> rooms();   // library, study, ...
std::span<const std::string_view> things();  // jug, bowl, ...: each takes "a", not "an"

// {role} {room} {thing} {colour} {number} {number_capital} {weekday}: each writes a free choice.
const Slots& common_slots();

// The adjectives of a table's rows in one list; those of row r are at r * n .. r * n + n - 1.
template <class Row, std::size_t rows, std::size_t n = std::tuple_size_v<decltype(Row::adjectives)>>
constexpr std::array<std::string_view, rows * n> all_adjectives(
    const std::array<Row, rows>& table) {
  std::array<std::string_view, rows * n> all;
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = table[i / n].adjectives[i % n];
  return all;
}

// The row of a table that an adjective of all_adjectives() comes from.
template <class Row, std::size_t rows>
constexpr const Row& row_of(const std::array<Row, rows>& table, std::size_t adjective) {
  return table[adjective / std::tuple_size_v<decltype(Row::adjectives)>];
}

// Chooses and writes words of a list one after another, none of them twice.
class WithoutRepeats {
 public:
  explicit WithoutRepeats(std::span<const std::string_view> words)
      : words_(words.begin(), words.end()) {}

  std::string_view write(Writer& writer);

 private:
  std::vector<std::string_view> words_;
};

}  // namespace heed::microworld
