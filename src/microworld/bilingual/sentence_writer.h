// Writes one sentence, word by word, as its choices are made: natural text, with the place of every
// word, and the logarithm of the choices' probability.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "microworld/bilingual/words.h"
#include "microworld/story.h"
#include "microworld/writer.h"

namespace heed::microworld::bilingual {

// A number for each thing that a sentence says. Words of two languages that say the same thing are
// aligned. 0: nothing.
using Concept = int;

// What a German word does in its phrase or clause.
enum class Role { other, determiner, adjective, noun, second_finite, first_finite, last_finite };

struct Word {
  std::string text;
  std::vector<Concept> sure;
  std::vector<Concept> possible = {};  // as far as the other language has a word to spare for it
  bool content = false;                // always has a sure counterpart
  Role role = Role::other;
  int phrase = 0;  // of determiners, adjectives and nouns: the same for those of one noun
  Gender gender = Gender::masculine;
  Number number = Number::singular;
  Case which = Case::nominative;
};

struct WrittenWord {
  Word word;
  Span span;  // bytes of the text
};

// A sentence as text. Words are separated by spaces, but none stands before a comma or a final
// mark, which are words of their own.
struct WrittenSentence {
  std::string text;
  std::vector<WrittenWord> words;
};

// Thrown when the sentence cannot become the text that the chooser follows: it is told no further.
struct DeadEnd {};

class SentenceWriter {
 public:
  explicit SentenceWriter(Chooser& chooser) : chooser_(chooser) {}

  // Takes one option and counts its probability.
  std::size_t choose(const Choice& choice);
  std::size_t choose(std::size_t count) { return choose(Choice{.count = count}); }
  std::size_t choose(std::span<const double> weights) {
    return choose(Choice{.count = weights.size(), .weights = weights});
  }
  bool chance(double probability);

  // Chooses among equally likely options; the text that follows starts with the option's words.
  std::size_t choose_text(std::span<const std::string> options);

  // The first word gets a capital letter.
  void write(Word word);

  double log_probability() const { return log_probability_; }
  WrittenSentence& sentence() { return sentence_; }

 private:
  std::string with_space(std::string_view word) const;

  Chooser& chooser_;
  double log_probability_ = 0.0;
  WrittenSentence sentence_;
};

// The words of a text that are separated by spaces.
std::vector<std::string_view> split_words(std::string_view text);

}  // namespace heed::microworld::bilingual
