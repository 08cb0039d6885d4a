#include "microworld/bilingual/english_forms.h"

#include <array>

namespace heed::microworld::bilingual {
namespace {

bool is_english_vowel(char letter) {
  return std::string_view("aeiou").find(letter) != std::string_view::npos;
}

std::string_view pronoun_of(const std::array<std::string_view, 7>& forms, Pronoun pronoun) {
  return forms[static_cast<std::size_t>(pronoun)];
}

}  // namespace

std::string third_person(std::string_view base) {
  if (base == "have") return "has";
  const std::string text(base);
  if (base.ends_with('y') && !is_english_vowel(base[base.size() - 2])) {
    return text.substr(0, text.size() - 1) + "ies";
  }
  for (std::string_view hiss : {"s", "sh", "ch", "x", "z", "o"}) {
    if (base.ends_with(hiss)) return text + "es";
  }
  return text + "s";
}

std::string_view indefinite_article(std::string_view next) {
  return is_english_vowel(next.front()) ? "an" : "a";
}

std::string_view english_pronoun(Pronoun pronoun) {
  return pronoun_of({"I", "you", "he", "she", "it", "we", "they"}, pronoun);
}

std::string_view english_object_pronoun(Pronoun pronoun) {
  return pronoun_of({"me", "you", "him", "her", "it", "us", "them"}, pronoun);
}

std::string_view english_possessive_pronoun(Pronoun pronoun) {
  return pronoun_of({"my", "your", "his", "her", "its", "our", "their"}, pronoun);
}

std::string_view english_number(std::size_t count) {
  constexpr std::array<std::string_view, 11> words = {
      "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"};
  return words[count - 2];
}

EnglishPerson english_person(const NounPhrase& subject) {
  if (subject.number == Number::plural) return EnglishPerson::plural;
  if (subject.kind != NounPhrase::Kind::pronoun) return EnglishPerson::third_singular;
  switch (subject.pronoun) {
    case Pronoun::i: return EnglishPerson::first_singular;
    case Pronoun::he:
    case Pronoun::she:
    case Pronoun::it: return EnglishPerson::third_singular;
    default: return EnglishPerson::plural;
  }
}

std::string_view form_of_be(EnglishPerson person, bool past) {
  switch (person) {
    case EnglishPerson::first_singular: return past ? "was" : "am";
    case EnglishPerson::third_singular: return past ? "was" : "is";
    case EnglishPerson::plural: break;
  }
  return past ? "were" : "are";
}

}  // namespace heed::microworld::bilingual
