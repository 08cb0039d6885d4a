// German clauses: what stands before the finite verb, between it and the end, and at the end.
#include <array>
#include <string>
#include <utility>

#include "base/error.h"
#include "microworld/bilingual/german.h"

namespace heed::microworld::bilingual {
namespace {

using Kind = NounPhrase::Kind;

void append_words(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

bool is_open(const NounPhrase& phrase) {  // takes "kein"
  return phrase.kind == Kind::noun &&
         (phrase.determiner == Determiner::indefinite || phrase.determiner == Determiner::bare);
}

bool is_definite(const NounPhrase& phrase) {
  return phrase.kind == Kind::noun && (phrase.determiner == Determiner::definite ||
                                       phrase.determiner == Determiner::demonstrative ||
                                       phrase.determiner == Determiner::possessive);
}

// "likes the house" is "mag das Haus", or told of the house: "gefällt das Haus".
const Verb& verb_to_please() {
  static const Verb verb{.frame = Frame::transitive,
                         .german = {GermanVerb{.infinitive = "gefallen",
                                               .participle = "gefallen",
                                               .present = "gefäll",
                                               .past = "gefiel",
                                               .object = Case::dative}},
                         .stative = true};
  return verb;
}

bool can_please(const Clause& clause) {
  return clause.predicate == Predicate::verb && clause.verb->german[0].infinitive == "mögen" &&
         clause.gap == Gap::none && clause.object && is_definite(*clause.object) &&
         clause.object->relative.empty() && clause.asked == Asked::nothing &&
         clause.subject.relative.empty() && clause.subject.kind != Kind::question &&
         !is_open(clause.subject) && !clause.frequency;
}

}  // namespace

Words GermanTeller::question_word(const Clause& clause, const GermanVerb& verb) {
  switch (clause.asked) {
    case Asked::nothing:
    case Asked::truth: return {};
    case Asked::subject: return noun_phrase(clause.subject, {});
    case Asked::object: return noun_phrase(*clause.object, {.which = verb.object});
    case Asked::place: return {content("wo", {clause.question_concept})};
    case Asked::direction: return {content("wohin", {clause.question_concept})};
    case Asked::time: return {content("wann", {clause.question_concept})};
    case Asked::reason: break;
  }
  const std::array<std::string, 2> words = {"warum", "wieso"};
  const std::array<double, 2> weights = {0.75, 0.25};
  return {content(words[choose_word(words, weights)], {clause.question_concept})};
}

void GermanTeller::tell_object(const Clause& clause, const VerbGroup& group, Concept& negation,
                               Middle& middle) {
  const GermanVerb& verb = *group.verb;
  if (clause.predicate == Predicate::profession) {
    const NounPhrase& profession = *clause.object;
    const Gender sex = pronoun_gender_of_subject(clause.subject);
    const bool female = sex == Gender::feminine;
    const GermanNoun& noun = profession.noun->german[female ? 1 : 0];
    if (negation != 0) {
      Word word = content(
          "kein" + std::string(mixed_ending(noun.gender, Number::singular, Case::nominative)),
          {negation});
      middle.predicate.push_back(std::move(word));
      negation = 0;
    }
    middle.predicate.push_back(content(noun.singular, {profession.head_concept}));
    return;
  }
  if (!clause.object || clause.asked == Asked::object) return;
  const NounPhrase& object = *clause.object;
  if (!verb.preposition.empty()) {
    const Concept preposition =
        clause.verb->preposition.empty() ? clause.verb_concept : clause.preposition_concept;
    middle.prepositional = prepositional(verb.preposition, preposition, object, verb.object);
    return;
  }
  Telling telling{.which = verb.object};
  if (negation != 0 && is_open(object) && group.adverbs.empty()) {
    telling.denied = negation;
    negation = 0;
  }
  Words relative;
  if (!object.relative.empty()) telling.relative = &relative;
  Words words = noun_phrase(object, telling);
  // A relative clause stands with its noun, or after the end of the clause.
  if (!relative.empty()) {
    const bool behind = !group.last.empty() && writer_.chance(0.75);
    append_words(behind ? extraposed_ : words, relative);
  }
  // An English "for" that is no word of its own in German.
  if (!clause.verb->preposition.empty())
    words.back().possible.push_back(clause.preposition_concept);
  if (object.kind == Kind::pronoun) {
    (verb.object == Case::dative ? middle.dative_pronoun : middle.accusative_pronoun) =
        std::move(words);
  } else {
    middle.object = std::move(words);
  }
}

// "man" or "woman" of who is a teacher.
Gender GermanTeller::pronoun_gender_of_subject(const NounPhrase& subject) {
  if (subject.kind == Kind::name) {
    return subject.name->sex == Sex::female ? Gender::feminine : Gender::masculine;
  }
  if (subject.kind == Kind::pronoun && (subject.pronoun == Pronoun::i)) {
    return writer_.chance(0.5) ? Gender::feminine : Gender::masculine;
  }
  if (subject.noun != nullptr && subject.noun->sex == Sex::female) return Gender::feminine;
  if (subject.kind == Kind::noun) return resolve(subject.referent).gender;
  return sentence_.referents[subject.referent].sex == Sex::female ? Gender::feminine
                                                                  : Gender::masculine;
}

void GermanTeller::fill_middle(const Clause& clause, const VerbGroup& group, Person person,
                               VerbPlace place, Middle& middle) {
  const GermanVerb& verb = *group.verb;
  Concept negation = clause.negated ? clause.negation_concept : 0;
  if (verb.reflexive) {
    Word word = mark(reflexive_pronoun(person));
    word.sure = {clause.verb_concept};
    middle.reflexive = {std::move(word)};
  }
  if (clause.time) middle.time = phrase(*clause.time);
  tell_object(clause, group, negation, middle);
  if (clause.recipient) {
    Words words = noun_phrase(*clause.recipient, {.which = Case::dative});
    (clause.recipient->kind == Kind::pronoun ? middle.dative_pronoun : middle.recipient) =
        std::move(words);
  }
  // "liest oft ein Buch", but "gern" stands after a definite object.
  if (clause.frequency) middle.adverbs = phrase(*clause.frequency);
  const bool open = clause.object && is_open(*clause.object);
  for (const Word& adverb : group.adverbs) {
    const bool late = adverb.text == "gern" && !open;
    (late ? middle.late_adverbs : middle.adverbs).push_back(adverb);
  }
  if (negation != 0) {
    // "liest nicht gern Bücher"
    const bool early = open && !group.adverbs.empty() && middle.late_adverbs.empty();
    Words& target = early ? middle.adverbs : middle.negation;
    target.insert(target.begin(), content("nicht", {negation}));
  }
  if (clause.manner) middle.manner = phrase(*clause.manner);
  if (clause.instrument) {
    middle.instrument =
        prepositional("mit", clause.instrument_concept, *clause.instrument, Case::dative);
  }
  if (clause.place) {
    const Relation& relation = *clause.place->relation;
    Words words = prepositional(relation.german, clause.place->concept_of_preposition,
                                clause.place->object, relation.object);
    // "isst im Garten einen Apfel" or "isst einen Apfel im Garten"
    // "wartet im Garten auf den Bus"
    const bool adjunct =
        clause.predicate == Predicate::verb && clause.verb->frame == Frame::transitive;
    const bool before_object = adjunct && !middle.object.empty() && !clause.negated;
    const bool before_preposition = adjunct && !middle.prepositional.empty();
    const bool early = (before_object && writer_.chance(open ? 0.65 : 0.25)) ||
                       (before_preposition && writer_.chance(0.8));
    (early ? middle.early_place : middle.place) = std::move(words);
  }
  if (clause.adjective != nullptr) {
    const Adjective& adjective = *clause.adjective;
    const bool compared = clause.predicate == Predicate::comparison;
    const std::string_view word =
        compared ? adjective.german_comparative : adjective_word(adjective, "");
    middle.predicate.push_back(content(word, {clause.adjective_concept}));
    if (compared) {
      middle.predicate.push_back(content("als", {clause.standard_concept}));
      append_words(middle.predicate, noun_phrase(*clause.standard, {}));
      // "ist älter als die Katze"; "älter als die Katze ist" or "älter ist als die Katze"
      const bool ends = place == VerbPlace::last || !group.last.empty();
      if (ends && writer_.chance(0.6)) {
        extraposed_.assign(middle.predicate.begin() + 1, middle.predicate.end());
        middle.predicate.resize(1);
      }
    }
  }
}

// What stands before the finite verb of a main clause.
Words GermanTeller::front(const Clause& clause, Middle& middle) {
  const bool place_can = clause.predicate == Predicate::verb && clause.place && !clause.negated &&
                         clause.place->relation->object == Case::dative && !clause.frequency &&
                         clause.verb->frame != Frame::motion &&
                         clause.verb->frame != Frame::placement && !middle.place.empty() &&
                         clause.place->relation->german != "zu" && !middle.subject.empty();
  const std::array<double, 3> weights = {
      clause.time_first ? 0.25 : 0.72,
      middle.time.empty() ? 0.0 : (clause.time_first ? 0.75 : 0.24), place_can ? 0.1 : 0.0};
  const std::size_t option =
      weights[1] + weights[2] > 0.0 ? writer_.choose(weights) : std::size_t{0};
  Words& chosen = option == 0 ? middle.subject : option == 1 ? middle.time : middle.place;
  return std::exchange(chosen, {});
}

// The parts of the middle in their order. Pronouns come early: before the subject, unless that is a
// pronoun too, or after it: "weil sich der Mann beeilt" or "weil der Mann sich beeilt".
Words GermanTeller::ordered(const Clause& clause, const Middle& middle) {
  Words pronouns = middle.reflexive;
  append_words(pronouns, middle.accusative_pronoun);
  append_words(pronouns, middle.dative_pronoun);
  Words words;
  const bool early = !pronouns.empty() && !middle.subject.empty() &&
                     clause.subject.kind != Kind::pronoun && writer_.chance(0.5);
  append_words(words, early ? pronouns : middle.subject);
  append_words(words, early ? middle.subject : pronouns);
  for (const Words* part :
       {&middle.time, &middle.adverbs, &middle.recipient, &middle.early_place, &middle.object,
        &middle.negation, &middle.late_adverbs, &middle.manner, &middle.instrument,
        &middle.prepositional, &middle.place, &middle.predicate}) {
    append_words(words, *part);
  }
  return words;
}

Words GermanTeller::clause(const Clause& told, VerbPlace place) {
  if (told.predicate == Predicate::existence) return existence(told);
  Clause clause = told;
  if (can_please(clause) && writer_.chance(0.25)) {
    std::swap(clause.subject, *clause.object);
    clause.verb = &verb_to_please();
  }
  const Person person = person_of(clause.subject);
  const VerbGroup group = verb_group(clause, person, place);
  const Words asked = question_word(clause, *group.verb);
  Middle middle;
  if (clause.asked != Asked::subject && clause.gap != Gap::subject) {
    middle.subject = noun_phrase(clause.subject, {});
  }
  fill_middle(clause, group, person, place, middle);

  Words words = asked;
  if (place == VerbPlace::second && asked.empty()) words = front(clause, middle);
  if (place != VerbPlace::last) words.push_back(group.finite);
  append_words(words, ordered(clause, middle));
  append_words(words, group.last);
  if (place == VerbPlace::last) words.push_back(group.finite);
  append_words(words, std::exchange(extraposed_, {}));
  return words;
}

// "Es gibt eine Katze im Garten." or "Im Garten ist eine Katze."
Words GermanTeller::existence(const Clause& clause) {
  const bool past = clause.tense == Tense::past;
  const bool gives = writer_.chance(0.4);
  static constexpr GermanVerb geben{
      .infinitive = "geben", .participle = "gegeben", .present = "gib", .past = "gab"};
  const GermanVerb& verb = gives ? geben : verb_sein();
  const Person person = gives ? Person::er : person_of(clause.subject);
  Word finite =
      content(past ? past_form(verb, person) : present_form(verb, person), {clause.verb_concept});
  finite.role = Role::second_finite;
  const Words what =
      noun_phrase(clause.subject, {.which = gives ? Case::accusative : Case::nominative});
  const Relation& relation = *clause.place->relation;
  const Words where = prepositional(relation.german, clause.place->concept_of_preposition,
                                    clause.place->object, relation.object);
  Words words = gives ? Words{mark("es", {clause.question_concept})} : where;
  words.push_back(finite);
  append_words(words, what);
  if (gives) append_words(words, where);
  return words;
}

// With its commas.
Words GermanTeller::relative_clause(const NounPhrase& head, const Clause& told) {
  const Gender gender = resolve(head.referent).gender;
  const Person person = told.gap == Gap::subject
                            ? (head.number == Number::plural ? Person::sie : Person::er)
                            : person_of(told.subject);
  const VerbGroup group = verb_group(told, person, VerbPlace::last);
  Middle middle;
  if (told.gap != Gap::subject) middle.subject = noun_phrase(told.subject, {});
  fill_middle(told, group, person, VerbPlace::last, middle);
  Words words = {mark(",")};
  Case which = Case::nominative;
  if (told.gap == Gap::object) {
    which = group.verb->object;
    if (!group.verb->preposition.empty()) {
      const bool own = !told.verb->preposition.empty();
      words.push_back(
          content(group.verb->preposition, {own ? told.preposition_concept : told.verb_concept}));
    }
  } else if (told.gap == Gap::place) {
    which = Case::dative;
    words.push_back(content("in", {told.preposition_concept}));
  }
  words.push_back(content(relative_pronoun(gender, head.number, which), {head.relative_concept}));
  append_words(words, ordered(told, middle));
  append_words(words, group.last);
  words.push_back(group.finite);
  words.push_back(mark(","));
  return words;
}

}  // namespace heed::microworld::bilingual
