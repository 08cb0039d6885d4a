// German sentences.
#include "microworld/bilingual/german.h"

#include <array>
#include <string>
#include <utility>

namespace heed::microworld::bilingual {
namespace {

void join_words(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

// After verbs of saying and believing.
bool may_omit_that(const Clause& main) {
  const std::string_view verb = main.verb->german[0].infinitive;
  const bool says = verb == "sagen" || verb == "glauben" || verb == "denken" || verb == "hoffen";
  return says && !main.negated && main.tense == Tense::present;
}

}  // namespace

GermanTeller::GermanTeller(SentenceWriter& writer, const Sentence& sentence)
    : writer_(writer), sentence_(sentence), referents_(sentence.referents.size()) {}

// Sets `main_order` if the clause after the conjunction has the order of a main clause.
std::string_view GermanTeller::conjunction_word(bool& main_order) {
  const auto one_of = [&](std::string_view first, std::string_view second, double share) {
    const std::array<std::string, 2> words = {std::string(first), std::string(second)};
    const std::array<double, 2> weights = {1.0 - share, share};
    return choose_word(words, weights) == 0 ? first : second;
  };
  main_order = false;
  switch (sentence_.conjunction) {
    case Conjunction::none: return {};
    case Conjunction::that:
      // "Er glaubt, sie schläft."
      main_order = may_omit_that(sentence_.main) && writer_.chance(0.25);
      return main_order ? "" : "dass";
    case Conjunction::whether: return "ob";
    case Conjunction::because: {
      const std::array<std::string, 3> words = {"weil", "da", "denn"};
      const std::array<double, 3> weights = {0.5, 0.2, 0.3};
      const std::size_t option = choose_word(words, weights);
      main_order = option == 2;
      return std::array<std::string_view, 3>{"weil", "da", "denn"}[option];
    }
    case Conjunction::although: return "obwohl";
    case Conjunction::when: return sentence_.second[0].tense == Tense::past ? "als" : "wenn";
    case Conjunction::on_condition: return one_of("wenn", "falls", 0.25);
    case Conjunction::meanwhile: return "während";
    case Conjunction::before: return one_of("bevor", "ehe", 0.15);
    case Conjunction::also: main_order = true; return "und";
    case Conjunction::but: main_order = true; return one_of("aber", "doch", 0.2);
  }
  return {};
}

void GermanTeller::tell_joined() {
  bool main_order = false;
  const std::string_view word = conjunction_word(main_order);
  Word conjunction = content(word, {sentence_.conjunction_concept});
  conjunction.content = word != "dass";
  Words words;
  const Word comma = mark(",", {sentence_.comma_concept});
  if (sentence_.second_first) {
    words = {conjunction};
    join_words(words, clause(sentence_.second[0], VerbPlace::last));
    words.push_back(comma);
    if (sentence_.conjunction == Conjunction::on_condition && writer_.chance(0.2)) {
      words.push_back(mark("dann"));
    }
    join_words(words, clause(sentence_.main, VerbPlace::first));
  } else {
    words = clause(sentence_.main, VerbPlace::second);
    if (sentence_.conjunction != Conjunction::also) words.push_back(comma);
    if (!word.empty()) words.push_back(conjunction);
    join_words(words,
               clause(sentence_.second[0], main_order ? VerbPlace::second : VerbPlace::last));
  }
  write(std::move(words));
}

void GermanTeller::tell() {
  if (!sentence_.second.empty()) return tell_joined();
  const VerbPlace place =
      sentence_.main.asked == Asked::truth ? VerbPlace::first : VerbPlace::second;
  write(clause(sentence_.main, place));
}

// A comma before another one or before the end is left out.
void GermanTeller::write(Words words) {
  const bool asks = sentence_.main.asked != Asked::nothing;
  words.push_back(mark(asks ? "?" : ".", {sentence_.end_concept}));
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& next = words[i + 1].text;
    if (words[i].text == "," && (next == "," || next == "." || next == "?")) {
      if (next == ",")
        words[i + 1].sure.insert(words[i + 1].sure.end(), words[i].sure.begin(),
                                 words[i].sure.end());
      continue;
    }
    writer_.write(words[i]);
  }
  writer_.write(words.back());
}

void tell_german(SentenceWriter& writer, const Sentence& sentence) {
  GermanTeller(writer, sentence).tell();
}

}  // namespace heed::microworld::bilingual
