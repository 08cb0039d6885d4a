// German sentences.
// German verb groups: which verb, which tense, and which of its words stand at the end.
#include "microworld/bilingual/german.h"

#include <array>
#include <utility>

#include "base/error.h"

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

void join_words(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

// After verbs of saying and believing.
bool may_omit_that(const Clause& main) {
  const std::string_view verb = main.verb->german[0].infinitive;
  const bool says = verb == "sagen" || verb == "glauben" || verb == "denken" || verb == "hoffen";
  return says && !main.negated && main.tense == Tense::present;
}

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

GermanTeller::GermanTeller(SentenceWriter& writer, const Sentence& sentence)
    : writer_(writer), sentence_(sentence), referents_(sentence.referents.size()) {}

// Sets `main_order` if the clause after the conjunction has the order of a main clause.
std::string_view GermanTeller::conjunction_word(bool& main_order) {
  const auto one_of = [&](std::string_view first, std::string_view second, double share) {
    const std::array<std::string, 2> words = {std::string(first), std::string(second)};
    const std::array<double, 2> weights = {1.0 - share, share};
    return choose_word(words, weights) == 0 ? first : second;
  };
  main_order = false;
  switch (sentence_.conjunction) {
    case Conjunction::none: return {};
    case Conjunction::that:
      // "Er glaubt, sie schläft."
      main_order = may_omit_that(sentence_.main) && writer_.chance(0.25);
      return main_order ? "" : "dass";
    case Conjunction::whether: return "ob";
    case Conjunction::because: {
      const std::array<std::string, 3> words = {"weil", "da", "denn"};
      const std::array<double, 3> weights = {0.5, 0.2, 0.3};
      const std::size_t option = choose_word(words, weights);
      main_order = option == 2;
      return std::array<std::string_view, 3>{"weil", "da", "denn"}[option];
    }
    case Conjunction::although: return "obwohl";
    case Conjunction::when: return sentence_.second[0].tense == Tense::past ? "als" : "wenn";
    case Conjunction::on_condition: return one_of("wenn", "falls", 0.25);
    case Conjunction::meanwhile: return "während";
    case Conjunction::before: return one_of("bevor", "ehe", 0.15);
    case Conjunction::also: main_order = true; return "und";
    case Conjunction::but: main_order = true; return one_of("aber", "doch", 0.2);
  }
  return {};
}

void GermanTeller::tell_joined() {
  bool main_order = false;
  const std::string_view word = conjunction_word(main_order);
  Word conjunction = content(word, {sentence_.conjunction_concept});
  conjunction.content = word != "dass";
  Words words;
  const Word comma = mark(",", {sentence_.comma_concept});
  if (sentence_.second_first) {
    words = {conjunction};
    join_words(words, clause(sentence_.second[0], VerbPlace::last));
    words.push_back(comma);
    if (sentence_.conjunction == Conjunction::on_condition && writer_.chance(0.2)) {
      words.push_back(mark("dann"));
    }
    join_words(words, clause(sentence_.main, VerbPlace::first));
  } else {
    words = clause(sentence_.main, VerbPlace::second);
    if (sentence_.conjunction != Conjunction::also) words.push_back(comma);
    if (!word.empty()) words.push_back(conjunction);
    join_words(words,
               clause(sentence_.second[0], main_order ? VerbPlace::second : VerbPlace::last));
  }
  write(std::move(words));
}

void GermanTeller::tell() {
  if (!sentence_.second.empty()) return tell_joined();
  const VerbPlace place =
      sentence_.main.asked == Asked::truth ? VerbPlace::first : VerbPlace::second;
  write(clause(sentence_.main, place));
}

// A comma before another one or before the end is left out.
void GermanTeller::write(Words words) {
  const bool asks = sentence_.main.asked != Asked::nothing;
  words.push_back(mark(asks ? "?" : ".", {sentence_.end_concept}));
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& next = words[i + 1].text;
    if (words[i].text == "," && (next == "," || next == "." || next == "?")) {
      if (next == ",")
        words[i + 1].sure.insert(words[i + 1].sure.end(), words[i].sure.begin(),
                                 words[i].sure.end());
      continue;
    }
    writer_.write(words[i]);
  }
  writer_.write(words.back());
}

void tell_german(SentenceWriter& writer, const Sentence& sentence) {
  GermanTeller(writer, sentence).tell();
}

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
