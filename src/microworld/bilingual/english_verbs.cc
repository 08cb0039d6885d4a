// English verb groups: auxiliaries, negation and the main verb.
#include <string>
#include <vector>

#include "base/error.h"
#include "microworld/bilingual/english.h"
#include "microworld/bilingual/english_forms.h"

namespace heed::microworld::bilingual {
namespace {

bool is_simple(const Clause& clause) {
  return clause.modal == nullptr && !clause.progressive &&
         (clause.tense == Tense::present || clause.tense == Tense::past);
}

bool is_copula(const Clause& clause) { return clause.predicate != Predicate::verb; }

bool is_cannot(const Clause& clause, bool inverted) {
  return clause.modal != nullptr && clause.modal->english == "can" && clause.negated && !inverted &&
         clause.tense == Tense::present;
}

// "do", "does", "did" in questions and negations.
bool takes_do(const Clause& clause, bool inverted) {
  if (!clause.negated && !inverted) return false;
  if (clause.modal != nullptr) return !clause.modal->auxiliary;
  return is_simple(clause) && !is_copula(clause);
}

}  // namespace

bool EnglishTeller::has_auxiliary(const Clause& clause, bool inverted) const {
  return !is_simple(clause) || is_copula(clause) || takes_do(clause, inverted);
}

void EnglishTeller::write_auxiliary(Clause& clause, bool inverted) {
  const EnglishPerson person = english_person(clause.subject);
  const bool third = person == EnglishPerson::third_singular;
  const bool past = clause.tense == Tense::past;
  // Stands for no word of the German sentence, unless that has one to spare.
  const auto write_helper = [&](std::string_view text) {
    writer_.write({.text = std::string(text),
                   .sure = {},
                   .possible = {clause.verb_concept, clause.auxiliary_concept}});
  };
  if (takes_do(clause, inverted)) {
    write_helper(past ? "did" : third ? "does" : "do");
  } else if (clause.modal != nullptr) {
    if (is_cannot(clause, inverted)) {
      writer_.write({.text = "cannot",
                     .sure = {clause.auxiliary_concept, clause.negation_concept},
                     .content = true});
      return;
    }
    const Modal& modal = *clause.modal;
    const std::string_view text = past                       ? modal.english_past
                                  : third || modal.auxiliary ? modal.english
                                                             : modal.english_plain;
    const std::vector<std::string_view> words = split_words(text);
    write_words(words[0], clause.auxiliary_concept, true);
    if (words.size() > 1) write_helper(words[1]);
  } else if (clause.progressive) {
    write_helper(form_of_be(person, past));
  } else if (clause.tense == Tense::perfect) {
    write_words(third ? "has" : "have", clause.auxiliary_concept);
  } else if (clause.tense == Tense::future) {
    writer_.write(
        {.text = "will", .sure = {clause.auxiliary_concept}, .possible = {clause.verb_concept}});
  } else if (is_copula(clause)) {
    write_words(form_of_be(person, past), clause.verb_concept, true);
  }
}

// What stands after the auxiliary, and in a question after the subject.
void EnglishTeller::write_after_auxiliary(Clause& clause, bool inverted) {
  if (clause.negated && !is_cannot(clause, inverted)) {
    write_words("not", clause.negation_concept, true);
  }
  if (clause.modal != nullptr && takes_do(clause, inverted)) {
    const std::vector<std::string_view> words = split_words(clause.modal->english_plain);
    write_words(words[0], clause.auxiliary_concept, true);
    writer_.write({.text = std::string(words[1]),
                   .sure = {},
                   .possible = {clause.verb_concept, clause.auxiliary_concept}});
  }
  if (is_copula(clause) && clause.tense == Tense::future) {
    write_words("be", clause.verb_concept, true);
  }
}

bool EnglishTeller::verb_fits(const Verb& verb, const Clause& clause, const ClausePlace& place,
                              Classes subject) const {
  if ((verb.subject & subject) == 0) return false;
  if (clause.progressive && verb.gerund.empty()) return false;
  if (verb.stative && (!is_simple(clause))) return false;
  // "The boys put the book there" would be told of today and of yesterday alike.
  const bool third = english_person(clause.subject) == EnglishPerson::third_singular;
  if (verb.past == verb.english && clause.tense == Tense::past && !third) return false;
  const bool prepositional = !verb.german[0].preposition.empty() || !verb.preposition.empty();
  switch (verb.frame) {
    case Frame::clause: return place.clauses && !place.whether;
    case Frame::question: return place.clauses && place.whether;
    case Frame::impersonal: return false;
    default: break;
  }
  if (place.clauses) return false;
  const bool takes = (verb.object & place.object) != 0;
  switch (clause.gap) {
    case Gap::object: return verb.frame == Frame::transitive && takes;
    case Gap::place:
      return (verb.frame == Frame::intransitive && !verb.gerund.empty()) ||
             (verb.frame == Frame::position && takes);
    case Gap::subject:
      if (verb.frame == Frame::ditransitive) return false;
      break;
    case Gap::none: break;
  }
  switch (place.asked) {
    case Asked::object: return verb.frame == Frame::transitive && !prepositional && takes;
    case Asked::place: return verb.frame == Frame::position || verb.frame == Frame::intransitive;
    case Asked::direction: return verb.frame == Frame::motion;
    default: return true;
  }
}

std::string EnglishTeller::verb_text(const Verb& verb, const Clause& clause, bool inverted) const {
  std::string text;
  const bool third = english_person(clause.subject) == EnglishPerson::third_singular;
  if (clause.modal != nullptr || clause.tense == Tense::future || takes_do(clause, inverted)) {
    text = verb.english;
  } else if (clause.progressive) {
    text = verb.gerund;
  } else if (clause.tense == Tense::perfect) {
    text = verb.participle;
  } else if (clause.tense == Tense::past) {
    text = verb.past;
  } else {
    text = third ? third_person(verb.english) : std::string(verb.english);
  }
  return verb.tail.empty() ? text : text + " " + std::string(verb.tail);
}

void EnglishTeller::choose_verb(Clause& clause, const ClausePlace& place, Classes subject,
                                bool inverted) {
  std::vector<const Verb*> verbs;
  std::vector<std::string> texts;
  for (const Verb& verb : grammar_.verbs) {
    if (!verb_fits(verb, clause, place, subject)) continue;
    verbs.push_back(&verb);
    texts.push_back(verb_text(verb, clause, inverted));
  }
  check(!verbs.empty(), "the form of a clause has a verb");
  const std::size_t option = writer_.choose_text(texts);
  clause.verb = verbs[option];
  write_words(texts[option], clause.verb_concept, true);
}

}  // namespace heed::microworld::bilingual
