// English sentences: statements, questions, and two clauses together.
// English verb groups: auxiliaries, negation and the main verb.
#include "microworld/bilingual/english.h"

#include <array>
#include <utility>

#include "base/error.h"

namespace heed::microworld::bilingual {
namespace {

constexpr double weather_share = 0.12;  // of the second clauses that can tell of it

struct Joint {
  std::string_view word;
  Conjunction conjunction;
  bool leads = false;   // may stand first
  bool simple = false;  // its clause is in the present or past
  bool weather = false;
  bool past = true;  // may be told of the past
  bool affirmative = false;
};

constexpr std::array joints = {
    Joint{"because", Conjunction::because, false, false, true},
    Joint{"although", Conjunction::although, true, false, true},
    Joint{"when", Conjunction::when, true, true, true},
    Joint{"if", Conjunction::on_condition, true, true, true, false},
    Joint{"while", Conjunction::meanwhile, true, true, true},
    Joint{"before", Conjunction::before, true, true, false, true, true},
    Joint{"and", Conjunction::also, false, false, true},
    Joint{"but", Conjunction::but, false, false, false},
};

// The tenses of a clause beside one of the given tense.
unsigned tenses_beside(Tense tense) {
  if (tense == Tense::past) return tense_bit(Tense::past);
  return tense_bit(Tense::present) | tense_bit(Tense::perfect) | tense_bit(Tense::future);
}

std::string_view before_slash(std::string_view word) { return word.substr(0, word.find('/')); }

bool is_simple(const Clause& clause) {
  return clause.modal == nullptr && !clause.progressive &&
         (clause.tense == Tense::present || clause.tense == Tense::past);
}

bool is_copula(const Clause& clause) { return clause.predicate != Predicate::verb; }

bool is_cannot(const Clause& clause, WordOrder order) {
  return clause.modal != nullptr && clause.modal->english == "can" && clause.negated &&
         order == WordOrder::plain && clause.tense == Tense::present;
}

// "do", "does", "did" in questions and negations.
bool takes_do(const Clause& clause, WordOrder order) {
  if (!clause.negated && order == WordOrder::plain) return false;
  if (clause.modal != nullptr) return !clause.modal->auxiliary;
  return is_simple(clause) && !is_copula(clause);
}

bool is_english_vowel(char letter) {
  return std::string_view("aeiou").find(letter) != std::string_view::npos;
}

std::string_view pronoun_of(const std::array<std::string_view, 7>& forms, Pronoun pronoun) {
  return forms[static_cast<std::size_t>(pronoun)];
}

}  // namespace

std::vector<std::string> phrase_texts(std::span<const Phrase> phrases) {
  std::vector<std::string> texts;
  for (const Phrase& phrase : phrases) {
    std::string text;
    for (std::string_view word : split_words(phrase.english)) {
      if (!text.empty()) text += ' ';
      text += before_slash(word);
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

Adverbial EnglishTeller::write_phrase(const Phrase& phrase) {
  Adverbial adverbial{.phrase = &phrase};
  for (std::size_t i = 1; i < adverbial.concepts.size(); ++i)
    adverbial.concepts[i] = next_concept();
  for (std::string_view word : split_words(phrase.english)) {
    const auto number = static_cast<std::size_t>(word.back() - '0');
    write_words(before_slash(word), adverbial.concepts[number], WordKind::content);
  }
  return adverbial;
}

Adverbial EnglishTeller::tell_phrase(std::span<const Phrase> phrases) {
  return write_phrase(phrases[writer_.choose_text(phrase_texts(phrases))]);
}

Sentence EnglishTeller::tell() {
  sentence_.conjunction_concept = next_concept();
  sentence_.comma_concept = next_concept();
  sentence_.end_concept = next_concept();
  switch (static_cast<SentenceKind>(writer_.choose(grammar_.likelihoods.kinds))) {
    case SentenceKind::statement: tell_statement(); break;
    case SentenceKind::yes_no_question: tell_yes_no_question(); break;
    case SentenceKind::open_question: tell_open_question(); break;
    case SentenceKind::reported: tell_reported(); break;
    case SentenceKind::joined: tell_joined(); break;
  }
  return std::move(sentence_);
}

void EnglishTeller::end(std::string_view mark) { write_words(mark, sentence_.end_concept); }

void EnglishTeller::tell_statement() {
  const double existence =
      grammar_.likelihoods.predicates[static_cast<std::size_t>(Predicate::existence)];
  if (writer_.chance(existence)) {
    tell_existence();
  } else {
    sentence_.main = tell_clause({.main = true});
  }
  end(".");
}

// "There is a cat in the garden."
void EnglishTeller::tell_existence() {
  Clause clause = start_clause(Asked::nothing);
  clause.predicate = Predicate::existence;
  write_words("there", clause.question_concept);
  const std::array<double, 2> tenses = {0.7, 0.3};
  clause.tense = writer_.choose(tenses) == 0 ? Tense::present : Tense::past;
  const Classes located = classes::living | classes::flat | classes::upright;
  const NounPlace place{.classes = located, .object = true, .may_deny = true, .indefinite = true};
  clause.subject = begin_noun_phrase(place);
  write_words(form_of_be(english_person(clause.subject), clause.tense), clause.verb_concept,
              WordKind::content);
  finish_noun_phrase(clause.subject, place);
  clause.place = tell_place(grammar_.relations, clause.subject.noun->classes & located,
                            {.classes = ~Classes{0}});
  sentence_.main = std::move(clause);
}

void EnglishTeller::tell_yes_no_question() {
  sentence_.main = tell_clause({.asked = Asked::truth});
  end("?");
}

void EnglishTeller::tell_open_question() {
  constexpr std::array asked = {Asked::subject,   Asked::object, Asked::place,
                                Asked::direction, Asked::time,   Asked::reason};
  constexpr std::array<double, 6> weights = {0.2, 0.25, 0.15, 0.1, 0.15, 0.15};
  sentence_.main = tell_clause({.asked = asked[writer_.choose(weights)]});
  end("?");
}

// "says that ...", "asks whether ..."
void EnglishTeller::tell_reported() {
  const bool whether = writer_.chance(0.2);
  sentence_.main = tell_clause({.clauses = true, .whether = whether});
  sentence_.conjunction = whether ? Conjunction::whether : Conjunction::that;
  write_words(whether ? "whether" : "that", sentence_.conjunction_concept,
              whether ? WordKind::content : WordKind::function);
  second_clause_ = true;
  sentence_.second.push_back(
      tell_second({.tenses = tenses_beside(sentence_.main.tense)}, weather_share));
  end(".");
}

void EnglishTeller::tell_joined() {
  sentence_.second_first = writer_.chance(grammar_.likelihoods.fronted);
  const auto choose_joint = [&](bool leads) -> const Joint& {
    std::vector<std::string> words;
    std::vector<const Joint*> fitting;
    for (const Joint& joint : joints) {
      if (leads && !joint.leads) continue;
      if (!leads && !joint.past && sentence_.main.tense == Tense::past) continue;
      const bool comma =
          joint.conjunction == Conjunction::also || joint.conjunction == Conjunction::but;
      words.push_back((comma ? ", " : "") + std::string(joint.word));
      fitting.push_back(&joint);
    }
    const Joint& joint = *fitting[writer_.choose_text(words)];
    sentence_.conjunction = joint.conjunction;
    return joint;
  };
  if (sentence_.second_first) {
    const Joint& joint = choose_joint(true);
    write_words(joint.word, sentence_.conjunction_concept, WordKind::content);
    const unsigned tenses = tense_bit(Tense::present) | (joint.past ? tense_bit(Tense::past) : 0U);
    sentence_.second.push_back(
        tell_second({.tenses = tenses, .simple = true, .affirmative = joint.affirmative},
                    joint.weather ? weather_share : 0.0));
    write_words(",", sentence_.comma_concept);
    second_clause_ = true;
    sentence_.main = tell_clause({.tenses = tenses_beside(sentence_.second[0].tense)});
  } else {
    sentence_.main = tell_clause({.main = true});
    const Joint& joint = choose_joint(false);
    if (joint.conjunction == Conjunction::also || joint.conjunction == Conjunction::but) {
      write_words(",", sentence_.comma_concept);
    }
    write_words(joint.word, sentence_.conjunction_concept, WordKind::content);
    second_clause_ = true;
    sentence_.second.push_back(tell_second({.tenses = tenses_beside(sentence_.main.tense),
                                            .simple = joint.simple,
                                            .affirmative = joint.affirmative},
                                           joint.weather ? weather_share : 0.0));
  }
  end(".");
}

Clause EnglishTeller::tell_second(const ClausePlace& place, double weather) {
  bool can_rain = false;
  for (const Verb& verb : grammar_.verbs) can_rain |= verb.frame == Frame::impersonal;
  if (can_rain && writer_.chance(weather)) return tell_weather(place);
  return tell_clause(place);
}

// "it rains"
Clause EnglishTeller::tell_weather(const ClausePlace& place) {
  Clause clause = start_clause(Asked::nothing);
  clause.subject.kind = NounPhrase::Kind::pronoun;
  clause.subject.pronoun = Pronoun::it;
  clause.subject.head_concept = next_concept();
  clause.subject.referent = sentence_.referents.size();
  sentence_.referents.push_back({});
  write_words("it", clause.subject.head_concept, WordKind::content);
  const bool past = (place.tenses & tense_bit(Tense::present)) == 0 ||
                    ((place.tenses & tense_bit(Tense::past)) != 0 && writer_.chance(0.4));
  clause.tense = past ? Tense::past : Tense::present;
  clause.progressive = !past && !place.simple && writer_.chance(0.4);
  clause.negated = writer_.chance(grammar_.likelihoods.negation);
  write_auxiliary(clause, WordOrder::plain);
  write_after_auxiliary(clause, WordOrder::plain);
  std::vector<const Verb*> verbs;
  std::vector<std::string> texts;
  for (const Verb& verb : grammar_.verbs) {
    if (verb.frame != Frame::impersonal) continue;
    verbs.push_back(&verb);
    texts.push_back(verb_text(verb, clause, WordOrder::plain));
  }
  const std::size_t option = writer_.choose_text(texts);
  clause.verb = verbs[option];
  write_words(texts[option], clause.verb_concept, WordKind::content);
  return clause;
}

Sentence tell_english(SentenceWriter& writer, const Grammar& grammar) {
  return EnglishTeller(writer, grammar).tell();
}

bool EnglishTeller::has_auxiliary(const Clause& clause, WordOrder order) const {
  return !is_simple(clause) || is_copula(clause) || takes_do(clause, order);
}

void EnglishTeller::write_auxiliary(Clause& clause, WordOrder order) {
  const EnglishPerson person = english_person(clause.subject);
  const bool third = person == EnglishPerson::third_singular;
  const bool past = clause.tense == Tense::past;
  // Stands for no word of the German sentence, unless that has one to spare.
  const auto write_helper = [&](std::string_view text) {
    writer_.write({.text = std::string(text),
                   .sure = {},
                   .possible = {clause.verb_concept, clause.auxiliary_concept}});
  };
  if (takes_do(clause, order)) {
    write_helper(past ? "did" : third ? "does" : "do");
  } else if (clause.modal != nullptr) {
    if (is_cannot(clause, order)) {
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
    write_words(words[0], clause.auxiliary_concept, WordKind::content);
    if (words.size() > 1) write_helper(words[1]);
  } else if (clause.progressive) {
    write_helper(form_of_be(person, clause.tense));
  } else if (clause.tense == Tense::perfect) {
    write_words(third ? "has" : "have", clause.auxiliary_concept);
  } else if (clause.tense == Tense::future) {
    writer_.write(
        {.text = "will", .sure = {clause.auxiliary_concept}, .possible = {clause.verb_concept}});
  } else if (is_copula(clause)) {
    write_words(form_of_be(person, clause.tense), clause.verb_concept, WordKind::content);
  }
}

// What stands after the auxiliary, and in a question after the subject.
void EnglishTeller::write_after_auxiliary(Clause& clause, WordOrder order) {
  if (clause.negated && !is_cannot(clause, order)) {
    write_words("not", clause.negation_concept, WordKind::content);
  }
  if (clause.modal != nullptr && takes_do(clause, order)) {
    const std::vector<std::string_view> words = split_words(clause.modal->english_plain);
    write_words(words[0], clause.auxiliary_concept, WordKind::content);
    writer_.write({.text = std::string(words[1]),
                   .sure = {},
                   .possible = {clause.verb_concept, clause.auxiliary_concept}});
  }
  if (is_copula(clause) && clause.tense == Tense::future) {
    write_words("be", clause.verb_concept, WordKind::content);
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

std::string EnglishTeller::verb_text(const Verb& verb, const Clause& clause,
                                     WordOrder order) const {
  std::string text;
  const bool third = english_person(clause.subject) == EnglishPerson::third_singular;
  if (clause.modal != nullptr || clause.tense == Tense::future || takes_do(clause, order)) {
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
                                WordOrder order) {
  std::vector<const Verb*> verbs;
  std::vector<std::string> texts;
  for (const Verb& verb : grammar_.verbs) {
    if (!verb_fits(verb, clause, place, subject)) continue;
    verbs.push_back(&verb);
    texts.push_back(verb_text(verb, clause, order));
  }
  check(!verbs.empty(), "the form of a clause has a verb");
  const std::size_t option = writer_.choose_text(texts);
  clause.verb = verbs[option];
  write_words(texts[option], clause.verb_concept, WordKind::content);
}

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

std::string_view form_of_be(EnglishPerson person, Tense tense) {
  const bool past = tense == Tense::past;
  switch (person) {
    case EnglishPerson::first_singular: return past ? "was" : "am";
    case EnglishPerson::third_singular: return past ? "was" : "is";
    case EnglishPerson::plural: break;
  }
  return past ? "were" : "are";
}

}  // namespace heed::microworld::bilingual
