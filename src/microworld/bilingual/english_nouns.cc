// English noun phrases and prepositional phrases.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/error.h"
#include "microworld/bilingual/english.h"

namespace heed::microworld::bilingual {
namespace {

using Kind = NounPhrase::Kind;

// How a noun phrase may start, and how likely it does.
struct Opening {
  Kind kind = Kind::noun;
  double weight = 0.0;
  Determiner determiner = Determiner::definite;
  Number number = Number::singular;
  bool mass = false;
  Pronoun pronoun = Pronoun::i;
};

constexpr Number one = Number::singular, several = Number::plural;

constexpr std::array noun_openings = {
    Opening{Kind::noun, 0.36, Determiner::definite, one},
    Opening{Kind::noun, 0.11, Determiner::definite, several},
    Opening{Kind::noun, 0.17, Determiner::indefinite, one},
    Opening{Kind::noun, 0.04, Determiner::demonstrative, one},
    Opening{Kind::noun, 0.02, Determiner::demonstrative, several},
    Opening{Kind::noun, 0.03, Determiner::every, one},
    Opening{Kind::noun, 0.02, Determiner::no, one},
    Opening{Kind::noun, 0.05, Determiner::number, several},
    Opening{Kind::noun, 0.03, Determiner::many, several},
    Opening{Kind::noun, 0.02, Determiner::some, several},
    Opening{Kind::noun, 0.03, Determiner::bare, several},
    Opening{Kind::noun, 0.06, Determiner::bare, one, true},
};

constexpr double possessive_weight = 0.025;  // of each possessor and number
constexpr double name_weight = 0.11;
constexpr double pronoun_weight = 0.03;    // of each pronoun
constexpr double antecedent_weight = 0.7;  // of a pronoun that speaks of something said before

constexpr std::array free_pronouns = {Pronoun::i,   Pronoun::you, Pronoun::he,
                                      Pronoun::she, Pronoun::we,  Pronoun::they};

Number number_of(Pronoun pronoun) {
  return pronoun == Pronoun::we || pronoun == Pronoun::they ? several : one;
}

bool is_third(Pronoun pronoun) {
  return pronoun == Pronoun::he || pronoun == Pronoun::she || pronoun == Pronoun::it ||
         pronoun == Pronoun::they;
}

// "I see me", "we see me": of the same people.
bool clashes(const NounPhrase& other, Pronoun pronoun) {
  if (other.kind != Kind::pronoun) return false;
  const auto speaker = [](Pronoun p) { return p == Pronoun::i || p == Pronoun::we; };
  return other.pronoun == pronoun || (speaker(other.pronoun) && speaker(pronoun));
}

bool fits_plain(const Opening& opening) {
  return opening.determiner == Determiner::definite ||
         opening.determiner == Determiner::indefinite ||
         opening.determiner == Determiner::demonstrative ||
         opening.determiner == Determiner::possessive;
}

// Whether the determiner can stand in the place.
bool determiner_fits(const Opening& opening, const NounPlace& place) {
  const Determiner determiner = opening.determiner;
  if (place.singular && opening.number == several) return false;
  if (place.plain && !fits_plain(opening)) return false;
  if (determiner == Determiner::no && !place.may_deny) return false;
  if (place.indefinite) {
    if (determiner == Determiner::no) return true;
    return determiner == Determiner::indefinite || determiner == Determiner::number ||
           determiner == Determiner::many;
  }
  if (!place.negated) return true;
  return fits_plain(opening) || determiner == Determiner::bare;
}

}  // namespace

std::vector<const Noun*> EnglishTeller::fitting_nouns(const NounPlace& place, Number number,
                                                      Countability countability) const {
  const Noun* other = place.apart_from != nullptr ? place.apart_from->noun : nullptr;
  std::vector<const Noun*> fitting;
  for (const Noun& noun : grammar_.nouns) {
    const bool is_mass = noun.plural.empty();
    if ((noun.classes & place.classes) == 0 || (noun.classes & place.excluded) != 0) continue;
    if (&noun == other || (is_mass && number == several)) continue;
    if (is_mass == (countability == Countability::mass)) fitting.push_back(&noun);
  }
  return fitting;
}

Classes EnglishTeller::classes_of(const NounPhrase& phrase) const {
  if (phrase.kind == Kind::noun) return phrase.noun->classes;
  if (phrase.kind == Kind::question) {
    return phrase.personal ? classes::person : classes::flat | classes::upright;
  }
  const ReferentFacts& facts = sentence_.referents[phrase.referent];
  return facts.noun != nullptr ? facts.noun->classes : classes::person;
}

void EnglishTeller::remember(const NounPhrase& phrase) {
  if (!second_clause_) said_.push_back(phrase);
}

// The pronouns that can speak of exactly one thing said before.
std::vector<EnglishTeller::Antecedent> EnglishTeller::antecedents() const {
  std::vector<Antecedent> all;
  for (const NounPhrase& phrase : said_) {
    const auto add = [&](Pronoun pronoun, Sex sex) {
      all.push_back({pronoun, phrase.referent, classes_of(phrase), sex, phrase.number});
    };
    const Sex sex = sentence_.referents[phrase.referent].sex;
    const bool usable = phrase.kind != Kind::noun || phrase.determiner == Determiner::definite ||
                        phrase.determiner == Determiner::indefinite ||
                        phrase.determiner == Determiner::demonstrative ||
                        phrase.determiner == Determiner::possessive ||
                        phrase.determiner == Determiner::number;
    if (phrase.kind == Kind::pronoun && !is_third(phrase.pronoun)) continue;
    if (phrase.number == several) {
      add(Pronoun::they, Sex::none);
    } else if (sex == Sex::male || sex == Sex::either) {
      add(Pronoun::he, Sex::male);
      if (sex == Sex::either) add(Pronoun::she, Sex::female);
    } else if (sex == Sex::female) {
      add(Pronoun::she, Sex::female);
    } else if ((classes_of(phrase) & classes::person) == 0) {
      add(Pronoun::it, Sex::none);
    }
    if (!usable) {  // "no boy": keeps the pronoun from others, and does not take it
      for (Antecedent& antecedent : all) {
        if (antecedent.referent == phrase.referent) antecedent.classes = 0;
      }
    }
  }
  std::vector<Antecedent> clear;
  for (const Antecedent& antecedent : all) {
    const auto same = std::count_if(all.begin(), all.end(), [&](const Antecedent& other) {
      return other.pronoun == antecedent.pronoun;
    });
    if (same == 1) clear.push_back(antecedent);
  }
  return clear;
}

NounPhrase EnglishTeller::begin_noun_phrase(const NounPlace& place) {
  const Likelihoods& likely = grammar_.likelihoods;
  const bool has_one = !fitting_nouns(place, one, Countability::countable).empty();
  const bool has_mass = !fitting_nouns(place, one, Countability::mass).empty();
  std::vector<Opening> openings;
  const auto add_noun = [&](const Opening& opening) {
    Opening scaled = opening;
    scaled.weight *= likely.determiners[static_cast<std::size_t>(opening.determiner)];
    if (scaled.weight > 0.0 && determiner_fits(scaled, place)) openings.push_back(scaled);
  };
  for (Opening opening : noun_openings) {
    if (opening.mass ? has_mass : has_one) add_noun(opening);
    // "the milk", "this milk"
    if (has_mass && opening.number == one &&
        (opening.determiner == Determiner::definite ||
         opening.determiner == Determiner::demonstrative)) {
      opening.mass = true;
      opening.weight *= 0.4;
      add_noun(opening);
    }
  }
  for (Pronoun possessor : free_pronouns) {
    Opening opening{Kind::noun, possessive_weight, Determiner::possessive, one, false, possessor};
    if (has_one) add_noun(opening);
    opening.number = several;
    opening.weight *= 0.4;
    if (has_one) add_noun(opening);
  }
  const bool people = (place.classes & ~place.excluded & classes::person) != 0;
  if (people && (place.excluded & classes::person) == 0 && !place.plain && !place.indefinite) {
    if (likely.names > 0.0 && !grammar_.names.empty()) {
      openings.push_back({.kind = Kind::name, .weight = name_weight * likely.names});
    }
    for (Pronoun pronoun : free_pronouns) {
      if (place.apart_from != nullptr && clashes(*place.apart_from, pronoun)) continue;
      if (place.singular && (number_of(pronoun) == several || pronoun == Pronoun::you)) continue;
      if (likely.pronouns <= 0.0 || (second_clause_ && is_third(pronoun))) continue;
      openings.push_back({.kind = Kind::pronoun,
                          .weight = pronoun_weight * likely.pronouns,
                          .number = number_of(pronoun),
                          .pronoun = pronoun});
    }
  }
  std::vector<Antecedent> spoken_of;
  if (second_clause_ && !place.plain && !place.indefinite && !place.noun && likely.pronouns > 0.0) {
    for (const Antecedent& antecedent : antecedents()) {
      if ((antecedent.classes & place.classes) == 0) continue;
      if ((antecedent.classes & place.excluded) != 0) continue;
      if (place.apart_from != nullptr && clashes(*place.apart_from, antecedent.pronoun)) continue;
      if (place.apart_from != nullptr && place.apart_from->referent == antecedent.referent)
        continue;
      if (place.singular && antecedent.number == several) continue;
      spoken_of.push_back(antecedent);
    }
  }
  std::vector<double> weights;
  for (const Opening& opening : openings) weights.push_back(opening.weight);
  weights.resize(openings.size() + spoken_of.size(), antecedent_weight * likely.pronouns);
  check(!weights.empty(), "every place has a noun phrase");
  const std::size_t option = writer_.choose(weights);

  NounPhrase phrase;
  phrase.head_concept = next_concept();
  if (option >= openings.size()) {
    const Antecedent& antecedent = spoken_of[option - openings.size()];
    phrase.kind = Kind::pronoun;
    phrase.pronoun = antecedent.pronoun;
    phrase.number = antecedent.number;
    phrase.referent = antecedent.referent;
    if (antecedent.sex != Sex::none) {
      sentence_.referents[antecedent.referent].sex = antecedent.sex;
    }
    return phrase;
  }
  const Opening& opening = openings[option];
  phrase.kind = opening.kind;
  phrase.determiner = opening.determiner;
  phrase.number = opening.number;
  phrase.pronoun = opening.pronoun;
  phrase.mass = opening.mass;
  phrase.referent = sentence_.referents.size();
  ReferentFacts facts{.number = phrase.number};
  if (phrase.kind == Kind::pronoun) {
    if (phrase.pronoun == Pronoun::he) facts.sex = Sex::male;
    if (phrase.pronoun == Pronoun::she) facts.sex = Sex::female;
  }
  sentence_.referents.push_back(facts);
  return phrase;
}

void EnglishTeller::finish_noun_phrase(NounPhrase& phrase, const NounPlace& place) {
  if (phrase.kind == Kind::pronoun) {
    write_words(
        place.object ? english_object_pronoun(phrase.pronoun) : english_pronoun(phrase.pronoun),
        phrase.head_concept, WordKind::content);
  } else if (phrase.kind == Kind::name) {
    std::vector<const Name*> names;
    std::vector<std::string> texts;
    for (const Name& name : grammar_.names) {
      const bool said = std::any_of(said_.begin(), said_.end(),
                                    [&](const NounPhrase& other) { return other.name == &name; });
      const bool again = place.apart_from != nullptr && place.apart_from->name == &name;
      if (again || said) continue;
      names.push_back(&name);
      texts.emplace_back(name.name);
    }
    check(!names.empty(), "there are more names than places for them");
    phrase.name = names[writer_.choose_text(texts)];
    sentence_.referents[phrase.referent].sex = phrase.name->sex;
    write_words(phrase.name->name, phrase.head_concept, WordKind::content);
  } else {
    tell_noun(phrase, place);
  }
}

NounPhrase EnglishTeller::tell_noun_phrase(const NounPlace& place) {
  NounPhrase phrase = begin_noun_phrase(place);
  finish_noun_phrase(phrase, place);
  return phrase;
}

void EnglishTeller::tell_noun(NounPhrase& phrase, const NounPlace& place) {
  phrase.determiner_concept = next_concept();
  std::string determiner;
  switch (phrase.determiner) {
    case Determiner::definite: determiner = "the"; break;
    case Determiner::demonstrative: determiner = phrase.number == one ? "this" : "these"; break;
    case Determiner::possessive: determiner = english_possessive_pronoun(phrase.pronoun); break;
    case Determiner::every: determiner = "every"; break;
    case Determiner::no: determiner = "no"; break;
    case Determiner::many: determiner = "many"; break;
    case Determiner::some: determiner = "some"; break;
    case Determiner::number: {
      std::vector<std::string> words;
      for (std::size_t count = 2; count <= 12; ++count) words.emplace_back(english_number(count));
      phrase.count = 2 + writer_.choose_text(words);
      determiner = words[phrase.count - 2];
      break;
    }
    case Determiner::indefinite:  // waits for the next word
    case Determiner::bare: break;
  }
  if (!determiner.empty()) {
    write_words(determiner, phrase.determiner_concept,
                phrase.determiner != Determiner::definite ? WordKind::content : WordKind::function);
  }
  write_head(phrase, place);
  ReferentFacts& facts = sentence_.referents[phrase.referent];
  facts.noun = phrase.noun;
  facts.sex = phrase.noun->sex;
  if (place.relative && !phrase.noun->plural.empty() && phrase.determiner != Determiner::no &&
      writer_.chance(grammar_.likelihoods.relative)) {
    Concept pronoun = 0;
    phrase.relative.push_back(tell_relative(phrase, pronoun));
    phrase.relative_concept = pronoun;
  }
}

// The adjectives and the noun.
void EnglishTeller::write_head(NounPhrase& phrase, const NounPlace& place) {
  bool article = phrase.determiner == Determiner::indefinite;
  const auto with_article = [&](std::string_view word) {
    std::string text(word);
    return article ? std::string(indefinite_article(word)) + " " + text : text;
  };
  const auto write_article = [&](std::string_view word) {
    if (article) write_words(indefinite_article(word), phrase.determiner_concept);
    article = false;
  };
  std::vector<const Noun*> nouns = fitting_nouns(
      place, phrase.number, phrase.mass ? Countability::mass : Countability::countable);
  double likely = grammar_.likelihoods.adjective;
  while (phrase.adjectives.size() < 2) {
    std::vector<const Adjective*> adjectives;
    std::vector<std::string> texts;
    for (const Adjective& adjective : grammar_.adjectives) {
      const bool second = !phrase.adjectives.empty();
      if (second && (!adjective.colour || phrase.adjectives[0]->colour)) continue;
      const bool fits = std::any_of(nouns.begin(), nouns.end(), [&](const Noun* noun) {
        return (noun->classes & adjective.classes) != 0;
      });
      if (!fits) continue;
      adjectives.push_back(&adjective);
      texts.push_back(with_article(adjective.english));
    }
    if (adjectives.empty() || !writer_.chance(likely)) break;
    const Adjective* adjective = adjectives[writer_.choose_text(texts)];
    phrase.adjectives.push_back(adjective);
    phrase.adjective_concepts.push_back(next_concept());
    write_article(adjective->english);
    write_words(adjective->english, phrase.adjective_concepts.back(), WordKind::content);
    std::erase_if(nouns,
                  [&](const Noun* noun) { return (noun->classes & adjective->classes) == 0; });
    likely *= 0.5;
  }
  std::vector<std::string> texts;
  for (const Noun* noun : nouns) {
    texts.push_back(with_article(phrase.number == one ? noun->english : noun->plural));
  }
  phrase.noun = nouns[writer_.choose_text(texts)];
  const std::string_view text = phrase.number == one ? phrase.noun->english : phrase.noun->plural;
  write_article(text);
  write_words(text, phrase.head_concept, WordKind::content);
}

PrepositionalPhrase EnglishTeller::tell_place(std::span<const Relation> relations, Classes located,
                                              const NounPlace& object) {
  std::vector<const Relation*> fitting;
  std::vector<std::string> texts;
  for (const Relation& relation : relations) {
    const Classes nouns = relation.classes & object.classes;
    if ((relation.located & located) == 0 ||
        fitting_nouns({.classes = nouns}, one, Countability::countable).empty())
      continue;
    fitting.push_back(&relation);
    texts.emplace_back(relation.english);
  }
  check(!fitting.empty(), "everything can be somewhere");
  PrepositionalPhrase phrase;
  phrase.relation = fitting[writer_.choose_text(texts)];
  phrase.concept_of_preposition = next_concept();
  write_words(phrase.relation->english, phrase.concept_of_preposition, WordKind::content);
  phrase.object = tell_noun_phrase({.classes = phrase.relation->classes & object.classes,
                                    .object = true,
                                    .plain = true,
                                    .singular = true,
                                    .negated = object.negated});
  return phrase;
}

void EnglishTeller::write_words(std::string_view text, Concept concept_of_words, WordKind kind) {
  for (std::string_view word : split_words(text)) {
    writer_.write({.text = std::string(word),
                   .sure = {concept_of_words},
                   .content = kind == WordKind::content});
  }
}

}  // namespace heed::microworld::bilingual
