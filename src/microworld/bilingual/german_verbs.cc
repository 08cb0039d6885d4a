// German verb groups: which verb, which tense, and which of its words stand at the end.
#include <array>
#include <string>
#include <utility>

#include "base/error.h"
#include "microworld/bilingual/german.h"

namespace heed::microworld::bilingual {
namespace {

constexpr double second_verb_share = 0.4;

const GermanVerb& verb_liegen() {
  static constexpr GermanVerb verb{.infinitive = "liegen", .participle = "gelegen", .past = "lag"};
  return verb;
}

const GermanVerb& verb_stehen() {
  static constexpr GermanVerb verb{
      .infinitive = "stehen", .participle = "gestanden", .past = "stand"};
  return verb;
}

std::string infinitive_of(const GermanVerb& verb) {
  return std::string(verb.prefix) + std::string(verb.infinitive);
}

}  // namespace

const GermanVerb& GermanTeller::choose_verb(const Clause& clause) {
  if (clause.predicate == Predicate::place) {
    // Things lie or stand somewhere, or are there.
    const NounPhrase& subject = clause.subject;
    if (subject.kind == NounPhrase::Kind::pronoun || subject.noun == nullptr) return verb_sein();
    const Classes kind = subject.noun->classes;
    if ((kind & (classes::flat | classes::upright)) == 0 || clause.tense == Tense::future) {
      return verb_sein();
    }
    if (!writer_.chance(0.4)) return verb_sein();
    return (kind & classes::flat) != 0 ? verb_liegen() : verb_stehen();
  }
  if (clause.predicate != Predicate::verb) return verb_sein();
  const auto& verbs = clause.verb->german;
  if (verbs[1].infinitive.empty()) return verbs[0];
  return verbs[writer_.chance(second_verb_share) ? 1 : 0];
}

// The English past is told in the preterite or in the perfect.
bool GermanTeller::tells_preterite(const Clause& clause, Person person) {
  if (clause.predicate != Predicate::verb || clause.verb->stative ||
      clause.verb->frame == Frame::position) {
    return true;
  }
  switch (person) {
    case Person::er: break;
    case Person::sie: {
      const NounPhrase& subject = clause.subject;
      const bool polite =
          subject.kind == NounPhrase::Kind::pronoun && subject.pronoun == Pronoun::you;
      if (polite) return false;
      break;
    }
    case Person::ich:
    case Person::wir: return writer_.chance(0.2);
    default: return false;
  }
  return writer_.chance(0.45);
}

GermanTeller::VerbGroup GermanTeller::verb_group(const Clause& clause, Person person,
                                                 VerbPlace place) {
  VerbGroup group;
  group.verb = &choose_verb(clause);
  const GermanVerb& verb = *group.verb;
  const auto meant = [&](std::string_view text) { return content(text, {clause.verb_concept}); };
  const auto helper = [&](const std::string& text) {
    Word word = mark(text);
    word.possible = {clause.verb_concept};
    return word;
  };
  const auto index = static_cast<std::size_t>(person);

  Tense tense = clause.tense;
  if (clause.modal != nullptr && !clause.modal->gladly) {
    const Modal& modal = *clause.modal;
    const bool other = clause.negated && !modal.negated[0].empty();
    const std::string text = tense == Tense::past ? past_from_first(modal.past, person)
                             : other              ? std::string(modal.negated[index])
                                                  : std::string(modal.present[index]);
    group.finite = content(text, {clause.auxiliary_concept});
    group.last = {meant(infinitive_of(verb))};
  } else {
    if (clause.modal != nullptr) {
      group.adverbs.push_back(content("gern", {clause.auxiliary_concept}));
    }
    if (tense == Tense::future && clause.time && writer_.chance(0.35)) tense = Tense::present;
    const GermanVerb& helping = verb.sein ? verb_sein() : verb_haben();
    if (tense == Tense::future) {
      group.finite = mark(present_form(verb_werden(), person), {clause.auxiliary_concept});
      group.last = {meant(infinitive_of(verb))};
    } else if (tense == Tense::perfect) {
      group.finite = mark(present_form(helping, person), {clause.auxiliary_concept});
      group.last = {meant(verb.participle)};
    } else if (tense == Tense::past && !tells_preterite(clause, person)) {
      group.finite = helper(present_form(helping, person));
      group.last = {meant(verb.participle)};
    } else {
      const std::string form =
          tense == Tense::past ? past_form(verb, person) : present_form(verb, person);
      const bool joined = place == VerbPlace::last;
      group.finite = meant(joined ? std::string(verb.prefix) + form : form);
      if (!joined && !verb.prefix.empty()) group.last = {meant(verb.prefix)};
    }
  }
  // "is sleeping": what is going on may be told by "gerade".
  if (clause.progressive && !clause.time && clause.verb->frame != Frame::position &&
      !clause.negated && !verb.reflexive && writer_.chance(0.3)) {
    Word word = mark("gerade");
    word.possible = {clause.auxiliary_concept};
    group.adverbs.push_back(std::move(word));
  }
  group.finite.role = place == VerbPlace::last     ? Role::last_finite
                      : place == VerbPlace::second ? Role::second_finite
                                                   : Role::first_finite;
  return group;
}

}  // namespace heed::microworld::bilingual
