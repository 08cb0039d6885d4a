// German noun phrases: nouns, articles and adjectives that agree, and pronouns.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "microworld/bilingual/german.h"

namespace heed::microworld::bilingual {
namespace {

using Kind = NounPhrase::Kind;

constexpr double synonym_share = 0.4;

constexpr std::array<std::string_view, 11> german_numbers = {
    "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf"};

Declension declension_of(const NounPhrase& phrase, bool denied) {
  if (denied) return Declension::mixed;
  switch (phrase.determiner) {
    case Determiner::definite:
    case Determiner::demonstrative:
    case Determiner::every: return Declension::weak;
    case Determiner::indefinite:
    case Determiner::possessive:
    case Determiner::no: return Declension::mixed;
    default: return Declension::strong;
  }
}

}  // namespace

Word GermanTeller::mark(std::string_view text, std::vector<Concept> sure) {
  return {.text = std::string(text), .sure = std::move(sure)};
}

Word GermanTeller::content(std::string_view text, std::vector<Concept> sure) {
  return {.text = std::string(text), .sure = std::move(sure), .content = true};
}

std::size_t GermanTeller::choose_word(std::span<const std::string> words,
                                      std::span<const double> weights) {
  const std::vector<std::string_view> beginnings(words.begin(), words.end());
  return writer_.choose({.count = words.size(), .weights = weights, .beginnings = beginnings});
}

GermanTeller::Resolved& GermanTeller::resolve(Referent referent) {
  Resolved& resolved = referents_[referent];
  const ReferentFacts& facts = sentence_.referents[referent];
  if (resolved.noun != nullptr || facts.noun == nullptr) return resolved;
  const auto& nouns = facts.noun->german;
  std::size_t option = 0;
  if (facts.noun->sex == Sex::either) {
    const bool told = facts.sex != Sex::either || facts.number == Number::plural;
    if (facts.number == Number::plural) {
      option = 0;
    } else if (told) {
      option = facts.sex == Sex::female ? 1 : 0;
    } else {
      option = writer_.chance(0.5) ? 1 : 0;
    }
  } else if (!nouns[1].singular.empty()) {
    const std::array<std::string, 2> words = {
        std::string(facts.number == Number::singular ? nouns[0].singular : nouns[0].plural),
        std::string(facts.number == Number::singular ? nouns[1].singular : nouns[1].plural)};
    const std::array<double, 2> weights = {1.0 - synonym_share, synonym_share};
    option = choose_word(words, weights);
  }
  resolved.noun = &nouns[option];
  resolved.gender = resolved.noun->gender;
  return resolved;
}

// "das Mädchen ... sie" is as good as "das Mädchen ... es".
Gender GermanTeller::pronoun_gender(Referent referent) {
  Resolved& resolved = resolve(referent);
  if (resolved.pronoun_gender) return *resolved.pronoun_gender;
  const ReferentFacts& facts = sentence_.referents[referent];
  Gender gender = resolved.gender;
  if (facts.noun == nullptr) {
    gender = facts.sex == Sex::male     ? Gender::masculine
             : facts.sex == Sex::female ? Gender::feminine
                                        : Gender::neuter;
  } else if (facts.sex == Sex::female && gender == Gender::neuter) {
    gender = writer_.chance(0.7) ? Gender::feminine : Gender::neuter;
  }
  resolved.pronoun_gender = gender;
  return gender;
}

// One sentence speaks to one listener, or to several.
Person GermanTeller::address() {
  if (!address_) {
    constexpr std::array<double, 3> weights = {0.5, 0.3, 0.2};
    constexpr std::array persons = {Person::du, Person::sie, Person::ihr};
    address_ = persons[writer_.choose(weights)];
  }
  return *address_;
}

Person GermanTeller::person_of(const NounPhrase& subject) {
  if (subject.kind == Kind::pronoun) {
    switch (subject.pronoun) {
      case Pronoun::i: return Person::ich;
      case Pronoun::you: return address();
      case Pronoun::we: return Person::wir;
      default: break;
    }
  }
  return subject.number == Number::plural ? Person::sie : Person::er;
}

Words GermanTeller::pronoun(const NounPhrase& phrase, Case which) {
  const Person person = person_of(phrase);
  const bool third = person == Person::er;
  const Gender gender = third ? pronoun_gender(phrase.referent) : Gender::masculine;
  std::string text(personal_pronoun(person, gender, which));
  if (phrase.pronoun == Pronoun::you && person == Person::sie) text = capitalised(text);
  return {content(text, {phrase.head_concept})};
}

std::string GermanTeller::possessive_stem(Pronoun possessor) {
  switch (possessor) {
    case Pronoun::i: return "mein";
    case Pronoun::you:
      switch (address()) {
        case Person::du: return "dein";
        case Person::ihr: return "euer";
        default: return "Ihr";
      }
    case Pronoun::he:
    case Pronoun::it: return "sein";
    case Pronoun::we: return "unser";
    default: return "ihr";
  }
}

std::string GermanTeller::determiner(const NounPhrase& phrase, Gender gender,
                                     const Telling& telling) {
  const Number number = phrase.number;
  const auto joined = [](std::string_view stem, std::string_view ending) {
    return std::string(stem) + std::string(ending);
  };
  const auto one_of = [&](std::string first, std::string second, double share) {
    const std::array<std::string, 2> words = {std::move(first), std::move(second)};
    const std::array<double, 2> weights = {1.0 - share, share};
    return words[choose_word(words, weights)];
  };
  const std::string_view strong = strong_ending(gender, number, telling.which);
  const std::string_view mixed = mixed_ending(gender, number, telling.which);
  if (telling.denied != 0) return joined("kein", mixed);
  switch (phrase.determiner) {
    case Determiner::definite: return std::string(definite_article(gender, number, telling.which));
    case Determiner::indefinite: return joined("ein", mixed);
    case Determiner::no: return joined("kein", mixed);
    case Determiner::demonstrative: return joined("dies", strong);
    case Determiner::every: return joined("jed", strong);
    case Determiner::many: return one_of(joined("viel", strong), joined("zahlreich", strong), 0.25);
    case Determiner::some: return one_of(joined("einig", strong), "ein paar", 0.4);
    case Determiner::number: return std::string(german_numbers[phrase.count - 2]);
    case Determiner::bare: return {};
    case Determiner::possessive: break;
  }
  const std::string stem = possessive_stem(phrase.pronoun);
  return joined(stem == "euer" && !mixed.empty() ? "eur" : stem, mixed);
}

std::string_view GermanTeller::adjective_word(const Adjective& adjective, std::string_view ending) {
  if (adjective.synonym.empty()) return adjective.german;
  const std::array<std::string, 2> words = {inflected(adjective, adjective.german, ending),
                                            std::string(adjective.synonym) + std::string(ending)};
  const std::array<double, 2> weights = {1.0 - synonym_share, synonym_share};
  return choose_word(words, weights) == 0 ? adjective.german : adjective.synonym;
}

Words GermanTeller::noun(const NounPhrase& phrase, const Telling& telling) {
  const Resolved& resolved = resolve(phrase.referent);
  const Gender gender = resolved.gender;
  const int group = ++phrases_;
  Words words;
  const auto add = [&](Word word, Role role) {
    word.role = role;
    word.phrase = group;
    word.gender = gender;
    word.number = phrase.number;
    word.which = telling.which;
    words.push_back(std::move(word));
  };
  const std::string article = determiner(phrase, gender, telling);
  for (const std::string_view text : split_words(article)) {
    Word word = mark(text);
    if (phrase.determiner != Determiner::bare) word.sure.push_back(phrase.determiner_concept);
    if (telling.denied != 0) word.sure.push_back(telling.denied);
    word.content = telling.denied != 0 || phrase.determiner != Determiner::definite;
    add(std::move(word), Role::determiner);
  }
  const std::string_view ending = adjective_ending(declension_of(phrase, telling.denied != 0),
                                                   gender, phrase.number, telling.which);
  for (std::size_t i = 0; i < phrase.adjectives.size(); ++i) {
    const Adjective& adjective = *phrase.adjectives[i];
    const std::string_view german = adjective_word(adjective, ending);
    add(content(inflected(adjective, german, ending), {phrase.adjective_concepts[i]}),
        Role::adjective);
  }
  add(content(noun_form(*resolved.noun, phrase.number, telling.which), {phrase.head_concept}),
      Role::noun);
  if (!phrase.relative.empty()) {
    Words relative = relative_clause(phrase, phrase.relative[0]);
    Words& target = telling.relative != nullptr ? *telling.relative : words;
    target.insert(target.end(), relative.begin(), relative.end());
  }
  return words;
}

Words GermanTeller::noun_phrase(const NounPhrase& phrase, const Telling& telling) {
  switch (phrase.kind) {
    case Kind::pronoun: return pronoun(phrase, telling.which);
    case Kind::name: return {content(phrase.name->name, {phrase.head_concept})};
    case Kind::noun: return noun(phrase, telling);
    case Kind::question: break;
  }
  constexpr std::array<std::string_view, 3> persons = {"wer", "wen", "wem"};
  const auto which = static_cast<std::size_t>(telling.which);
  return {content(phrase.personal ? persons[which] : "was", {phrase.head_concept})};
}

// "auf den Tisch", "im Garten"; "in dem Haus, das ..." is not contracted.
Words GermanTeller::prepositional(std::string_view preposition, Concept concept_of_preposition,
                                  const NounPhrase& object, Case which) {
  Words words = noun_phrase(object, {.which = which});
  const bool definite = object.kind == Kind::noun && object.determiner == Determiner::definite;
  if (definite && object.relative.empty()) {
    const std::string_view joined = contraction(preposition, words[0].text);
    if (!joined.empty()) {
      words[0].text = joined;
      words[0].sure.push_back(concept_of_preposition);
      words[0].content = true;
      return words;
    }
  }
  words.insert(words.begin(), content(preposition, {concept_of_preposition}));
  return words;
}

// The German words of a fixed phrase, with the concepts of its English words.
Words GermanTeller::phrase(const Adverbial& adverbial) {
  const Phrase& fixed = *adverbial.phrase;
  std::string_view chosen = fixed.german;
  const auto last_word = [](std::string_view text) {
    const std::string_view word = split_words(text).back();
    return std::string(word.substr(0, word.find('/')));
  };
  if (!fixed.synonym.empty()) {
    const std::array<std::string, 2> options = {last_word(fixed.german), last_word(fixed.synonym)};
    const std::array<double, 2> weights = {1.0 - synonym_share, synonym_share};
    if (choose_word(options, weights) == 1) chosen = fixed.synonym;
  }
  Words words;
  for (std::string_view text : split_words(chosen)) {
    const std::size_t slash = text.find('/');
    Word word = content(text.substr(0, slash), {});
    bool possible = false;
    for (const char digit : text.substr(slash + 1)) {
      if (digit == '?') {
        possible = true;
        word.content = false;
      } else if (digit != ',') {
        const Concept named = adverbial.concepts[static_cast<std::size_t>(digit - '0')];
        (possible ? word.possible : word.sure).push_back(named);
      }
    }
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace heed::microworld::bilingual
