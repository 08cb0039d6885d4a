#include "microworld/bilingual/german_forms.h"

#include <array>
#include <utility>

namespace heed::microworld::bilingual {
namespace {

// Columns of the tables below: masculine, feminine, neuter, plural. Rows: nominative, accusative,
// dative.
using Table = std::array<std::array<std::string_view, 4>, 3>;

std::string_view look_up(const Table& table, Gender gender, Number number, Case which) {
  const std::size_t column = number == Number::plural ? 3 : static_cast<std::size_t>(gender);
  return table[static_cast<std::size_t>(which)][column];
}

constexpr Table definite_articles = {{{"der", "die", "das", "die"},  //
                                      {"den", "die", "das", "die"},
                                      {"dem", "der", "dem", "den"}}};
constexpr Table strong_endings = {{{"er", "e", "es", "e"},  //
                                   {"en", "e", "es", "e"},
                                   {"em", "er", "em", "en"}}};
constexpr Table mixed_article_endings = {{{"", "e", "", "e"},  //
                                          {"en", "e", "", "e"},
                                          {"em", "er", "em", "en"}}};
constexpr Table weak_adjective_endings = {{{"e", "e", "e", "en"},  //
                                           {"en", "e", "e", "en"},
                                           {"en", "en", "en", "en"}}};
constexpr Table mixed_adjective_endings = {{{"er", "e", "es", "en"},  //
                                            {"en", "e", "es", "en"},
                                            {"en", "en", "en", "en"}}};

// Columns: nominative, accusative, dative. Rows: ich, du, wir, ihr, sie.
constexpr std::array<std::array<std::string_view, 3>, 6> pronouns = {{{"ich", "mich", "mir"},
                                                                      {"du", "dich", "dir"},
                                                                      {"", "", ""},
                                                                      {"wir", "uns", "uns"},
                                                                      {"ihr", "euch", "euch"},
                                                                      {"sie", "sie", "ihnen"}}};
constexpr std::array<std::array<std::string_view, 3>, 3> third_persons = {
    {{"er", "ihn", "ihm"}, {"sie", "sie", "ihr"}, {"es", "es", "ihm"}}};

struct IrregularPresent {
  std::string_view infinitive;
  std::array<std::string_view, 6> forms;
};

constexpr std::array irregular_presents = {
    IrregularPresent{"sein", {"bin", "bist", "ist", "sind", "seid", "sind"}},
    IrregularPresent{"haben", {"habe", "hast", "hat", "haben", "habt", "haben"}},
    IrregularPresent{"werden", {"werde", "wirst", "wird", "werden", "werdet", "werden"}},
    IrregularPresent{"wissen", {"weiß", "weißt", "weiß", "wissen", "wisst", "wissen"}},
    IrregularPresent{"mögen", {"mag", "magst", "mag", "mögen", "mögt", "mögen"}},
};

bool is_vowel(char letter) {
  return std::string_view("aeiou").find(letter) != std::string_view::npos ||
         static_cast<unsigned char>(letter) >= 0x80;
}

// Whether an e stands between the stem and an ending with t or st: "arbeitet", "öffnet", but
// "lernt", "wohnt".
bool needs_e(std::string_view stem) {
  const char last = stem.back();
  if (last == 't' || last == 'd') return true;
  if ((last != 'm' && last != 'n') || stem.size() < 3) return false;
  const char before = stem[stem.size() - 2];
  if (is_vowel(before) || std::string_view("lrmn").find(before) != std::string_view::npos) {
    return false;
  }
  return before != 'h' || stem[stem.size() - 3] == 'c';
}

bool ends_in_s_sound(std::string_view stem) {
  return stem.ends_with('s') || stem.ends_with('z') || stem.ends_with('x') || stem.ends_with("ß");
}

// The infinitive without -en or -n.
std::string_view stem_of(std::string_view infinitive) {
  return infinitive.substr(0, infinitive.size() - (infinitive.ends_with("en") ? 2 : 1));
}

// "schläfst", "schläft"; "hältst", "hält"; "liest"; "lädt".
std::string with_changed_stem(std::string_view stem, Person person) {
  const std::string text(stem);
  if (person == Person::er) return stem.ends_with('t') ? text : text + "t";
  return text + (ends_in_s_sound(stem) ? "t" : "st");
}

std::string joined(std::string_view stem, std::string_view ending) {
  return std::string(stem) + std::string(ending);
}

}  // namespace

std::string_view definite_article(Gender gender, Number number, Case which) {
  return look_up(definite_articles, gender, number, which);
}

std::string_view strong_ending(Gender gender, Number number, Case which) {
  return look_up(strong_endings, gender, number, which);
}

std::string_view mixed_ending(Gender gender, Number number, Case which) {
  return look_up(mixed_article_endings, gender, number, which);
}

std::string_view adjective_ending(Declension declension, Gender gender, Number number, Case which) {
  switch (declension) {
    case Declension::weak: return look_up(weak_adjective_endings, gender, number, which);
    case Declension::mixed: return look_up(mixed_adjective_endings, gender, number, which);
    case Declension::strong: break;
  }
  return strong_ending(gender, number, which);
}

std::string inflected(const Adjective& adjective, std::string_view german,
                      std::string_view ending) {
  if (adjective.stem == "lila") return std::string(german);
  const bool own_stem = german == adjective.german && !adjective.stem.empty();
  return joined(own_stem ? adjective.stem : german, ending);
}

std::string noun_form(const GermanNoun& noun, Number number, Case which) {
  if (number == Number::singular) {
    const bool oblique = which != Case::nominative && !noun.oblique.empty();
    return std::string(oblique ? noun.oblique : noun.singular);
  }
  const bool takes_n =
      which == Case::dative && !noun.plural.ends_with('n') && !noun.plural.ends_with('s');
  return joined(noun.plural, takes_n ? "n" : "");
}

std::string_view relative_pronoun(Gender gender, Number number, Case which) {
  if (number == Number::plural && which == Case::dative) return "denen";
  return definite_article(gender, number, which);
}

std::string_view personal_pronoun(Person person, Gender gender, Case which) {
  const auto& forms = person == Person::er ? third_persons[static_cast<std::size_t>(gender)]
                                           : pronouns[static_cast<std::size_t>(person)];
  return forms[static_cast<std::size_t>(which)];
}

std::string_view reflexive_pronoun(Person person) {
  constexpr std::array<std::string_view, 6> forms = {"mich", "dich", "sich", "uns", "euch", "sich"};
  return forms[static_cast<std::size_t>(person)];
}

std::string present_form(const GermanVerb& verb, Person person) {
  for (const IrregularPresent& irregular : irregular_presents) {
    if (irregular.infinitive == verb.infinitive) {
      return std::string(irregular.forms[static_cast<std::size_t>(person)]);
    }
  }
  const std::string_view stem = stem_of(verb.infinitive);
  const bool on_eln = verb.infinitive.ends_with("eln");
  switch (person) {
    case Person::ich:
      return on_eln ? joined(stem.substr(0, stem.size() - 2), "le") : joined(stem, "e");
    case Person::du:
      if (!verb.present.empty()) return with_changed_stem(verb.present, person);
      if (ends_in_s_sound(stem)) return joined(stem, "t");
      return joined(stem, needs_e(stem) ? "est" : "st");
    case Person::er:
      if (!verb.present.empty()) return with_changed_stem(verb.present, person);
      [[fallthrough]];
    case Person::ihr: return joined(stem, needs_e(stem) ? "et" : "t");
    case Person::wir:
    case Person::sie: break;
  }
  return std::string(verb.infinitive);
}

std::string past_from_first(std::string_view first, Person person) {
  if (first.ends_with('e')) {
    constexpr std::array<std::string_view, 6> endings = {"", "st", "", "n", "t", "n"};
    return joined(first, endings[static_cast<std::size_t>(person)]);
  }
  const bool dental = first.ends_with('t') || first.ends_with('d');
  switch (person) {
    case Person::ich:
    case Person::er: return std::string(first);
    case Person::du: return joined(first, dental || ends_in_s_sound(first) ? "est" : "st");
    case Person::ihr: return joined(first, dental ? "et" : "t");
    case Person::wir:
    case Person::sie: break;
  }
  return joined(first, "en");
}

std::string past_form(const GermanVerb& verb, Person person) {
  if (!verb.past.empty()) return past_from_first(verb.past, person);
  const std::string_view stem = stem_of(verb.infinitive);
  return past_from_first(joined(stem, needs_e(stem) ? "ete" : "te"), person);
}

const GermanVerb& verb_sein() {
  static constexpr GermanVerb verb{
      .infinitive = "sein", .participle = "gewesen", .past = "war", .sein = true};
  return verb;
}

const GermanVerb& verb_haben() {
  static constexpr GermanVerb verb{.infinitive = "haben", .participle = "gehabt", .past = "hatte"};
  return verb;
}

const GermanVerb& verb_werden() {
  static constexpr GermanVerb verb{
      .infinitive = "werden", .participle = "geworden", .past = "wurde", .sein = true};
  return verb;
}

std::string_view contraction(std::string_view preposition, std::string_view article) {
  struct Row {
    std::string_view preposition, article, joined;
  };
  static constexpr std::array rows = {
      Row{"in", "dem", "im"},   Row{"an", "dem", "am"},  Row{"zu", "dem", "zum"},
      Row{"zu", "der", "zur"},  Row{"in", "das", "ins"}, Row{"an", "das", "ans"},
      Row{"von", "dem", "vom"},
  };
  for (const Row& row : rows) {
    if (row.preposition == preposition && row.article == article) return row.joined;
  }
  return {};
}

std::string capitalised(std::string_view word) {
  std::string text(word);
  if (text.empty()) return text;
  if (text[0] >= 'a' && text[0] <= 'z') {
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  } else if (text[0] == '\xC3' && text.size() > 1 &&
             (text[1] == '\xA4' || text[1] == '\xB6' || text[1] == '\xBC')) {
    text[1] = static_cast<char>(text[1] - 0x20);  // ä, ö, ü in UTF-8
  }
  return text;
}

}  // namespace heed::microworld::bilingual
