// What English clauses say of their subjects: predicates, tenses, modal verbs and negation.
#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "microworld/bilingual/english.h"

namespace heed::microworld::bilingual {

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
                     fitting_nouns(standard, Number::singular, false).empty())) {
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
      return std::any_of(
          grammar_.relations.begin(), grammar_.relations.end(), [&](const Relation& relation) {
            return (relation.located & subject) != 0 &&
                   !fitting_nouns({.classes = relation.classes}, Number::singular, false).empty();
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
void EnglishTeller::choose_form(Clause& clause, const ClausePlace& place, bool may_negate) {
  const bool inverted = place.asked != Asked::nothing && place.asked != Asked::subject;
  const Classes subject = inverted ? ~Classes{0} : classes_of(clause.subject);
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
  const bool negates = may_negate && !counted && !place.affirmative;
  clause.negated = negates && writer_.chance(grammar_.likelihoods.negation);
}

}  // namespace heed::microworld::bilingual
