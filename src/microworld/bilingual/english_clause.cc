// English clauses.
// What English clauses say of their subjects: predicates, tenses, modal verbs and negation.
#include "microworld/bilingual/english.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"

namespace heed::microworld::bilingual {
namespace {

// Questions put the auxiliary before the subject, but for those that ask for the subject itself.
WordOrder word_order(Asked asked) {
  return asked == Asked::nothing || asked == Asked::subject ? WordOrder::plain
                                                            : WordOrder::inverted;
}

constexpr Classes anything = ~Classes{0};

Classes classes_of_subjects(std::span<const Adjective> adjectives, bool compared) {
  Classes all = 0;
  for (const Adjective& adjective : adjectives) {
    if (!adjective.predicative || (compared && adjective.english_comparative.empty())) continue;
    all |= adjective.classes;
  }
  return all;
}

}  // namespace

// Writes "who", "where" and the like; whether there is one.
bool EnglishTeller::question_word(Clause& clause, const ClausePlace& place) {
  NounPhrase asked;
  asked.kind = NounPhrase::Kind::question;
  switch (place.asked) {
    case Asked::nothing:
    case Asked::truth: return false;
    case Asked::subject:
    case Asked::object: {
      asked.head_concept = next_concept();
      const std::array<std::string, 2> words = {"what", "who"};
      asked.personal = writer_.choose_text(words) == 1;
      write_words(words[asked.personal ? 1 : 0], asked.head_concept, WordKind::content);
      if (place.asked == Asked::subject) clause.subject = asked;
      if (place.asked == Asked::object) clause.object = asked;
      return true;
    }
    case Asked::place:
    case Asked::direction:
      write_words("where", clause.question_concept, WordKind::content);
      return true;
    case Asked::time: write_words("when", clause.question_concept, WordKind::content); return true;
    case Asked::reason: break;
  }
  write_words("why", clause.question_concept, WordKind::content);
  return true;
}

Clause EnglishTeller::start_clause(Asked asked) {
  Clause clause;
  clause.asked = asked;
  for (Concept* named :
       {&clause.verb_concept, &clause.auxiliary_concept, &clause.negation_concept,
        &clause.preposition_concept, &clause.instrument_concept, &clause.adjective_concept,
        &clause.standard_concept, &clause.question_concept}) {
    *named = next_concept();
  }
  return clause;
}

Clause EnglishTeller::tell_clause(const ClausePlace& wanted) {
  ClausePlace place = wanted;
  Clause clause = start_clause(place.asked);
  const Likelihoods& likely = grammar_.likelihoods;
  if (place.main && place.asked == Asked::nothing && !grammar_.times.empty() &&
      writer_.chance(likely.time * likely.fronted)) {
    std::vector<Phrase> phrases;
    for (const TimePhrase& time : grammar_.times) phrases.push_back(time.phrase);
    const TimePhrase& time = grammar_.times[writer_.choose_text(phrase_texts(phrases))];
    clause.time = write_phrase(time.phrase);
    clause.time_first = true;
    place.tenses &= time.tenses;
  }
  const QuestionWord asked =
      question_word(clause, place) ? QuestionWord::written : QuestionWord::none;
  const WordOrder order = word_order(place.asked);
  if (place.asked == Asked::object)
    place.object = clause.object->personal ? classes::person : classes::thing | classes::food;
  tell_subject(clause, place, order, asked);
  tell_rest(clause, place, order);
  return clause;
}

// Most sentences are about somebody or something that does things.
void EnglishTeller::choose_actor(NounPlace& subject) {
  constexpr Classes actors = classes::living | classes::flyer | classes::machine | classes::vehicle;
  NounPlace others = subject;
  others.excluded = actors;
  NounPlace acting = subject;
  acting.classes &= actors;
  if (fitting_nouns(others, Number::singular, Countability::countable).empty() ||
      fitting_nouns(acting, Number::singular, Countability::countable).empty()) {
    return;
  }
  subject = writer_.chance(grammar_.likelihoods.actor) ? acting : others;
}

// The subject and, after it or around it, the auxiliary.
void EnglishTeller::tell_subject(Clause& clause, const ClausePlace& place, WordOrder order,
                                 QuestionWord asked) {
  const auto of_verbs = [&] {
    Classes all = 0;
    for (const Verb& verb : grammar_.verbs) {
      if (verb_fits(verb, clause, place, anything)) all |= verb.subject;
    }
    return all;
  };
  const auto of_relations = [&] {
    Classes all = 0;
    for (const Relation& relation : grammar_.relations) all |= relation.located;
    return all;
  };
  const auto of_adjectives = [&](bool compared) {
    return classes_of_subjects(grammar_.adjectives, compared);
  };
  if (order == WordOrder::inverted) {
    choose_predicate(clause, place, anything);
    choose_form(clause, place,
                asked == QuestionWord::none || place.asked == Asked::reason ? Negation::allowed
                                                                            : Negation::excluded);
    NounPlace subject{.negated = clause.negated};
    if (clause.predicate == Predicate::verb) {
      subject.classes = of_verbs();
      if (clause.modal != nullptr) subject.classes &= classes::living | classes::machine;
    } else if (clause.predicate == Predicate::place) {
      subject.classes = of_relations();
    } else {
      subject.classes = of_adjectives(clause.predicate == Predicate::comparison);
    }
    choose_actor(subject);
    clause.subject = begin_noun_phrase(subject);
    write_auxiliary(clause, WordOrder::inverted);
    finish_noun_phrase(clause.subject, subject);
    remember(clause.subject);
    write_after_auxiliary(clause, WordOrder::inverted);
    return;
  }
  if (place.asked != Asked::subject) {
    Classes subjects = of_verbs();
    if (!place.clauses && !place.relative) subjects |= of_adjectives(false) | of_relations();
    NounPlace subject{.classes = subjects, .relative = place.main, .may_deny = place.main};
    choose_actor(subject);
    clause.subject = tell_noun_phrase(subject);
    remember(clause.subject);
  }
  choose_predicate(clause, place, classes_of(clause.subject));
  choose_form(clause, place,
              place.asked == Asked::nothing ? Negation::allowed : Negation::excluded);
  write_auxiliary(clause, WordOrder::plain);
  write_after_auxiliary(clause, WordOrder::plain);
}

void EnglishTeller::tell_rest(Clause& clause, const ClausePlace& place, WordOrder order) {
  if (clause.predicate != Predicate::verb) return tell_after_copula(clause);
  if (!has_auxiliary(clause, order) && !place.bare && !place.clauses &&
      place.asked == Asked::nothing && !grammar_.frequencies.empty() &&
      writer_.chance(grammar_.likelihoods.frequency)) {
    clause.frequency = tell_phrase(grammar_.frequencies);
  }
  choose_verb(clause, place, classes_of(clause.subject), order);
  if (place.clauses) return;
  tell_complements(clause, place);
  tell_adjuncts(clause, place);
}

// "the man who sleeps", "the book that she reads", "the house in which he lives"
Clause EnglishTeller::tell_relative(const NounPhrase& head, Concept& pronoun) {
  const Classes noun = head.noun->classes;
  Clause clause = start_clause(Asked::nothing);
  ClausePlace place{.bare = true, .relative = true};
  const auto fits = [&](Gap gap, Classes subject) {
    Clause tried;
    tried.gap = gap;
    return std::any_of(grammar_.verbs.begin(), grammar_.verbs.end(), [&](const Verb& verb) {
      return verb_fits(verb, tried, {.relative = true, .object = noun}, subject);
    });
  };
  // One of the first adjectives or verbs, so that every noun has something to be.
  const bool is_something = (classes_of_subjects(grammar_.adjectives, false) & noun) != 0;
  const std::array<double, 4> weights = {
      0.0, fits(Gap::subject, noun) || is_something ? 0.5 : 0.0,
      fits(Gap::object, anything) ? 0.35 : 0.0,
      (noun & classes::interior) != 0 && fits(Gap::place, anything) ? 0.3 : 0.0};
  clause.gap = static_cast<Gap>(writer_.choose(weights));
  pronoun = next_concept();
  if (clause.gap == Gap::place) {
    place.object = noun;
    write_words("in", clause.preposition_concept, WordKind::content);
    write_words("which", pronoun, WordKind::content);
  } else if (clause.gap == Gap::object) {
    place.object = noun;
    write_words("that", pronoun, WordKind::content);
  } else {
    const std::array<std::string, 2> words = {"that", "which"};
    const bool personal = (noun & classes::person) != 0;
    write_words(personal ? "who" : words[writer_.choose_text(words)], pronoun, WordKind::content);
    clause.subject.noun = head.noun;
    clause.subject.number = head.number;
    clause.subject.referent = head.referent;
    choose_predicate(clause, place, noun);
    choose_form(clause, place, Negation::allowed);
    write_auxiliary(clause, WordOrder::plain);
    write_after_auxiliary(clause, WordOrder::plain);
    tell_rest(clause, place, WordOrder::plain);
    return clause;
  }
  tell_subject(clause, place, WordOrder::plain, QuestionWord::none);
  tell_rest(clause, place, WordOrder::plain);
  return clause;
}

// What follows "is".
void EnglishTeller::tell_after_copula(Clause& clause) {
  const Classes subject = classes_of(clause.subject);
  if (clause.predicate == Predicate::place) {
    clause.place =
        tell_place(grammar_.relations, subject, {.classes = anything, .negated = clause.negated});
    return;
  }
  if (clause.predicate == Predicate::profession) {
    std::vector<const Noun*> nouns;
    std::vector<std::string> texts;
    for (const Noun& noun : grammar_.nouns) {
      if (noun.sex != Sex::either) continue;
      nouns.push_back(&noun);
      texts.push_back(std::string(indefinite_article(noun.english)) + " " +
                      std::string(noun.english));
    }
    NounPhrase profession;
    profession.noun = nouns[writer_.choose_text(texts)];
    profession.head_concept = next_concept();
    const std::string_view noun = profession.noun->english;
    writer_.write({.text = std::string(indefinite_article(noun)),
                   .sure = {},
                   .possible = {profession.head_concept}});
    write_words(noun, profession.head_concept, WordKind::content);
    clause.object = profession;
    return;
  }
  const bool compared = clause.predicate == Predicate::comparison;
  const std::vector<const Adjective*> adjectives =
      predicate_adjectives(clause, classes_of(clause.subject));
  std::vector<std::string> texts;
  for (const Adjective* adjective : adjectives) {
    texts.emplace_back(compared ? adjective->english_comparative : adjective->english);
  }
  const std::size_t option = writer_.choose_text(texts);
  clause.adjective = adjectives[option];
  write_words(texts[option], clause.adjective_concept, WordKind::content);
  if (compared) {
    write_words("than", clause.standard_concept, WordKind::content);
    clause.standard = tell_noun_phrase({.classes = clause.adjective->classes & subject,
                                        .object = true,
                                        .plain = true,
                                        .apart_from = &clause.subject});
  }
}

void EnglishTeller::tell_complements(Clause& clause, const ClausePlace& place) {
  const Verb& verb = *clause.verb;
  const bool moves = verb.frame == Frame::motion || verb.frame == Frame::intransitive;
  if (moves && !place.bare && !verb.stative && !clause.frequency && !verb.gerund.empty() &&
      verb.tail.empty() && !grammar_.manners.empty() && place.asked == Asked::nothing &&
      writer_.chance(grammar_.likelihoods.manner)) {
    clause.manner = tell_phrase(grammar_.manners);
  }
  const NounPlace object{.classes = verb.object,
                         .object = true,
                         .negated = clause.negated,
                         .relative = place.main && place.asked == Asked::nothing,
                         .apart_from = &clause.subject};
  const auto tell_object = [&](const NounPlace& where) {
    clause.object = tell_noun_phrase(where);
    remember(*clause.object);
  };
  const Classes subject = classes_of(clause.subject);
  switch (verb.frame) {
    case Frame::transitive:
      if (!verb.preposition.empty()) {
        const bool told = !verb.german[0].preposition.empty();
        write_words(verb.preposition, clause.preposition_concept,
                    told ? WordKind::content : WordKind::function);
      }
      if (clause.gap != Gap::object && place.asked != Asked::object) tell_object(object);
      break;
    case Frame::ditransitive: {
      NounPlace given = object;
      given.classes &= ~classes::person;
      given.relative = false;
      given.noun = true;
      const NounPlace recipient{.classes = classes::person,
                                .object = true,
                                .negated = true,
                                .apart_from = &clause.subject};
      // "gives the child an apple" or "gives an apple to the child"
      const bool with_to = writer_.chance(0.4);
      if (with_to) {
        tell_object(given);
        writer_.write({.text = "to", .sure = {}, .possible = {clause.preposition_concept}});
      }
      clause.recipient = tell_noun_phrase(recipient);
      remember(*clause.recipient);
      if (!with_to) {
        tell_object(given);
      }
      break;
    }
    case Frame::motion:
      if (place.asked != Asked::direction) {
        clause.place = tell_place(grammar_.directions, verb.subject & subject,
                                  {.classes = anything, .negated = clause.negated});
      }
      break;
    case Frame::position:
      if (place.asked != Asked::place && clause.gap != Gap::place) {
        clause.place = tell_place(
            grammar_.relations, verb.subject & subject,
            {.classes = verb.object != 0 ? verb.object : anything, .negated = clause.negated});
      }
      break;
    case Frame::placement: {
      NounPlace placed = object;
      placed.relative = false;
      tell_object(placed);
      clause.place = tell_place(grammar_.directions, verb.object & classes_of(*clause.object),
                                {.classes = anything, .negated = clause.negated});
      break;
    }
    default: break;
  }
}

void EnglishTeller::tell_adjuncts(Clause& clause, const ClausePlace& place) {
  const Verb& verb = *clause.verb;
  const Likelihoods& likely = grammar_.likelihoods;
  if (place.bare || (clause.object && !clause.object->relative.empty())) return;
  if (verb.instrument != 0 && !clause.negated && place.asked != Asked::object &&
      writer_.chance(likely.instrument)) {
    write_words("with", clause.instrument_concept, WordKind::content);
    clause.instrument = tell_noun_phrase(
        {.classes = verb.instrument, .object = true, .plain = true, .singular = true});
  }
  const bool local = verb.frame == Frame::intransitive ||
                     (verb.frame == Frame::transitive && !verb.gerund.empty());
  const Classes located = verb.subject & classes::living & classes_of(clause.subject);
  if (local && !clause.place && !verb.stative && located != 0 && !verb.gerund.empty() &&
      !clause.instrument && place.asked != Asked::place && !grammar_.relations.empty() &&
      writer_.chance(likely.place)) {
    clause.place =
        tell_place(grammar_.relations, located, {.classes = anything, .negated = clause.negated});
  }
  if (clause.time || verb.stative || place.asked == Asked::time) return;
  std::vector<Phrase> phrases;
  for (const TimePhrase& time : grammar_.times) {
    if ((time.tenses & tense_bits(clause)) != 0) phrases.push_back(time.phrase);
  }
  if (phrases.empty() || !writer_.chance(likely.time)) return;
  const Phrase& chosen = phrases[writer_.choose_text(phrase_texts(phrases))];
  for (const TimePhrase& time : grammar_.times) {
    if (time.phrase.english == chosen.english) clause.time = write_phrase(time.phrase);
  }
}

// The times of the phrases that a clause can have.
unsigned tense_bits(const Clause& clause) {
  if (clause.progressive) return progressive_bit;
  if (clause.modal != nullptr && clause.tense == Tense::present) {
    return tense_bit(Tense::present) | tense_bit(Tense::future);
  }
  return tense_bit(clause.tense);
}

// What a copula can say of the subject: if possible nothing that its adjectives say already, as in
// "the red hat is red"; if compared, of something else too.
std::vector<const Adjective*> EnglishTeller::predicate_adjectives(const Clause& clause,
                                                                  Classes subject) const {
  const bool compared = clause.predicate == Predicate::comparison;
  const std::vector<const Adjective*>& said = clause.subject.adjectives;
  std::vector<const Adjective*> all, news;
  for (const Adjective& adjective : grammar_.adjectives) {
    const Classes shared = adjective.classes & subject;
    if (shared == 0 || !adjective.predicative) continue;
    const NounPlace standard{.classes = shared, .apart_from = &clause.subject};
    if (compared && (adjective.english_comparative.empty() ||
                     fitting_nouns(standard, Number::singular, Countability::countable).empty())) {
      continue;
    }
    const bool repeats = std::any_of(said.begin(), said.end(), [&](const Adjective* other) {
      return other == &adjective || (other->colour && adjective.colour);
    });
    all.push_back(&adjective);
    if (!repeats) news.push_back(&adjective);
  }
  return news.empty() ? all : news;
}

bool EnglishTeller::predicate_fits(Predicate predicate, const Clause& clause, Classes subject,
                                   const ClausePlace& place) const {
  Clause tried = clause;
  tried.predicate = predicate;
  if (form_options(tried, place, subject).empty()) return false;
  if (predicate == Predicate::verb) return true;
  const bool asks_part = place.asked == Asked::object || place.asked == Asked::place ||
                         place.asked == Asked::direction || place.asked == Asked::time;
  const bool relative = place.relative && predicate != Predicate::adjective;
  if (place.clauses || asks_part || relative || clause.gap == Gap::object ||
      clause.gap == Gap::place) {
    return false;
  }
  switch (predicate) {
    case Predicate::adjective:
      return place.asked != Asked::subject && !predicate_adjectives(tried, subject).empty();
    case Predicate::comparison:
      return place.asked == Asked::nothing && !predicate_adjectives(tried, subject).empty();
    case Predicate::place:
      return std::any_of(grammar_.relations.begin(), grammar_.relations.end(),
                         [&](const Relation& relation) {
                           return (relation.located & subject) != 0 &&
                                  !fitting_nouns({.classes = relation.classes}, Number::singular,
                                                 Countability::countable)
                                       .empty();
                         });
    case Predicate::profession:
      return subject == classes::person && clause.subject.number == Number::singular &&
             place.asked != Asked::subject &&
             std::any_of(grammar_.nouns.begin(), grammar_.nouns.end(),
                         [](const Noun& noun) { return noun.sex == Sex::either; });
    default: return false;
  }
}

void EnglishTeller::choose_predicate(Clause& clause, const ClausePlace& place, Classes subject) {
  std::array<double, 5> weights{};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (predicate_fits(static_cast<Predicate>(i), clause, subject, place)) {
      weights[i] = grammar_.likelihoods.predicates[i];
    }
  }
  check(std::accumulate(weights.begin(), weights.end(), 0.0) > 0.0, "a subject has a predicate");
  clause.predicate = static_cast<Predicate>(writer_.choose(weights));
}

// The forms for which there is a predicate.
std::vector<EnglishTeller::FormOption> EnglishTeller::form_options(const Clause& clause,
                                                                   const ClausePlace& place,
                                                                   Classes subject) const {
  const bool copula = clause.predicate != Predicate::verb;
  std::vector<FormOption> options;
  const auto add = [&](Form form, FormOption option, double share = 1.0) {
    option.weight = grammar_.likelihoods.forms[static_cast<std::size_t>(form)] * share;
    const bool rich =
        option.progressive || option.modal != nullptr || option.tense == Tense::perfect;
    const bool later = option.tense == Tense::future;
    const bool living = (subject & (classes::living | classes::machine)) != 0;
    Clause tried = clause;
    tried.tense = option.tense;
    tried.progressive = option.progressive;
    tried.modal = option.modal;
    const unsigned bits = option.progressive ? tense_bit(Tense::present) : tense_bits(tried);
    if (option.weight <= 0.0 || (bits & place.tenses) == 0) return;
    if ((rich && copula) || ((rich || later) && place.simple)) return;
    if (option.modal != nullptr && !living) return;
    const auto fits = [&](const Verb& verb) { return verb_fits(verb, tried, place, subject); };
    if (!copula && std::none_of(grammar_.verbs.begin(), grammar_.verbs.end(), fits)) return;
    options.push_back(option);
  };
  add(Form::present, {Tense::present});
  add(Form::progressive, {Tense::present, true});
  add(Form::past, {Tense::past});
  add(Form::perfect, {Tense::perfect});
  add(Form::future, {Tense::future});
  for (const Modal& modal : grammar_.modals) {
    const double share = 1.0 / static_cast<double>(grammar_.modals.size());
    add(Form::modal, {Tense::present, false, &modal}, share);
    if (!modal.english_past.empty()) add(Form::modal_past, {Tense::past, false, &modal}, share);
  }
  return options;
}

// Tense, modal verb and negation. The subject's determiner is known by now.
void EnglishTeller::choose_form(Clause& clause, const ClausePlace& place, Negation negation) {
  const bool is_inverted = word_order(place.asked) == WordOrder::inverted;
  const Classes subject = is_inverted ? ~Classes{0} : classes_of(clause.subject);
  const std::vector<FormOption> options = form_options(clause, place, subject);
  check(!options.empty(), "every clause has a form");
  std::vector<double> weights;
  for (const FormOption& option : options) weights.push_back(option.weight);
  const FormOption& option = options[writer_.choose(weights)];
  clause.tense = option.tense;
  clause.progressive = option.progressive;
  clause.modal = option.modal;
  const Determiner determiner = clause.subject.determiner;
  const bool counted = clause.subject.kind == NounPhrase::Kind::noun &&
                       (determiner == Determiner::every || determiner == Determiner::no ||
                        determiner == Determiner::many || determiner == Determiner::some);
  const bool negates = negation == Negation::allowed && !counted && !place.affirmative;
  clause.negated = negates && writer_.chance(grammar_.likelihoods.negation);
}

}  // namespace heed::microworld::bilingual
