// German inflection against tables written by hand.
#include "microworld/bilingual/german.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

namespace heed::microworld::bilingual {
namespace {

constexpr std::array all_cases = {Case::nominative, Case::accusative, Case::dative};

struct Paradigm {
  Declension declension;
  Number number;
  GermanNoun noun;
  std::array<const char*, 3> forms;  // nominative, accusative, dative
};

const GermanNoun hund{"Hund", Gender::masculine, "Hunde"};
const GermanNoun frau{"Frau", Gender::feminine, "Frauen"};
const GermanNoun kind{"Kind", Gender::neuter, "Kinder"};
const GermanNoun junge{"Junge", Gender::masculine, "Jungen", "Jungen"};
const GermanNoun auto_{"Auto", Gender::neuter, "Autos"};
constexpr Number one = Number::singular, several = Number::plural;
constexpr Declension weak = Declension::weak, mixed = Declension::mixed,
                     strong = Declension::strong;

const std::vector<Paradigm> paradigms = {
    {weak, one, hund, {"der alte Hund", "den alten Hund", "dem alten Hund"}},
    {weak, one, frau, {"die alte Frau", "die alte Frau", "der alten Frau"}},
    {weak, one, kind, {"das alte Kind", "das alte Kind", "dem alten Kind"}},
    {weak, one, junge, {"der alte Junge", "den alten Jungen", "dem alten Jungen"}},
    {weak, several, hund, {"die alten Hunde", "die alten Hunde", "den alten Hunden"}},
    {weak, several, frau, {"die alten Frauen", "die alten Frauen", "den alten Frauen"}},
    {weak, several, kind, {"die alten Kinder", "die alten Kinder", "den alten Kindern"}},
    {weak, several, auto_, {"die alten Autos", "die alten Autos", "den alten Autos"}},
    {mixed, one, hund, {"kein alter Hund", "keinen alten Hund", "keinem alten Hund"}},
    {mixed, one, frau, {"keine alte Frau", "keine alte Frau", "keiner alten Frau"}},
    {mixed, one, kind, {"kein altes Kind", "kein altes Kind", "keinem alten Kind"}},
    {mixed, several, hund, {"keine alten Hunde", "keine alten Hunde", "keinen alten Hunden"}},
    {strong, one, hund, {"alter Hund", "alten Hund", "altem Hund"}},
    {strong, one, frau, {"alte Frau", "alte Frau", "alter Frau"}},
    {strong, one, kind, {"altes Kind", "altes Kind", "altem Kind"}},
    {strong, several, kind, {"alte Kinder", "alte Kinder", "alten Kindern"}},
};

TEST(GermanForms, ArticlesAdjectivesAndNounsFollowTheTables) {
  const Adjective old{.english = "old", .german = "alt"};
  for (const Paradigm& row : paradigms) {
    for (const Case which : all_cases) {
      const Gender gender = row.noun.gender;
      std::string text;
      if (row.declension == weak) {
        text = std::string(definite_article(gender, row.number, which)) + " ";
      } else if (row.declension == mixed) {
        text = "kein" + std::string(mixed_ending(gender, row.number, which)) + " ";
      }
      text +=
          inflected(old, old.german, adjective_ending(row.declension, gender, row.number, which));
      text += " " + noun_form(row.noun, row.number, which);
      EXPECT_EQ(text, row.forms[static_cast<std::size_t>(which)]);
    }
  }
}

TEST(GermanForms, StemsOfAdjectivesChange) {
  for (const auto& [english, form] :
       std::vector<std::pair<std::string, std::string>>{{"dark", "dunkler"},
                                                        {"expensive", "teurer"},
                                                        {"high", "hoher"},
                                                        {"tired", "müder"},
                                                        {"purple", "lila"},
                                                        {"new", "neuer"}}) {
    bool found = false;
    for (const Adjective& adjective : all_adjectives()) {
      if (adjective.english != english) continue;
      found = true;
      EXPECT_EQ(inflected(adjective, adjective.german, "er"), form);
    }
    EXPECT_TRUE(found) << english;
  }
}

TEST(GermanForms, DieserAndJederTakeTheEndingsOfTheArticle) {
  const std::array<std::array<const char*, 3>, 4> forms = {{{"dieser", "diesen", "diesem"},
                                                            {"diese", "diese", "dieser"},
                                                            {"dieses", "dieses", "diesem"},
                                                            {"diese", "diese", "diesen"}}};
  for (std::size_t column = 0; column < 4; ++column) {
    for (const Case which : all_cases) {
      const Gender gender = column < 3 ? static_cast<Gender>(column) : Gender::feminine;
      const Number number = column < 3 ? one : several;
      EXPECT_EQ("dies" + std::string(strong_ending(gender, number, which)),
                forms[column][static_cast<std::size_t>(which)]);
    }
  }
}

TEST(GermanForms, Pronouns) {
  const std::array<std::array<const char*, 3>, 8> forms = {{{"ich", "mich", "mir"},
                                                            {"du", "dich", "dir"},
                                                            {"er", "ihn", "ihm"},
                                                            {"sie", "sie", "ihr"},
                                                            {"es", "es", "ihm"},
                                                            {"wir", "uns", "uns"},
                                                            {"ihr", "euch", "euch"},
                                                            {"sie", "sie", "ihnen"}}};
  const std::array<std::pair<Person, Gender>, 8> persons = {{{Person::ich, Gender::masculine},
                                                             {Person::du, Gender::masculine},
                                                             {Person::er, Gender::masculine},
                                                             {Person::er, Gender::feminine},
                                                             {Person::er, Gender::neuter},
                                                             {Person::wir, Gender::masculine},
                                                             {Person::ihr, Gender::masculine},
                                                             {Person::sie, Gender::masculine}}};
  for (std::size_t i = 0; i < persons.size(); ++i) {
    for (const Case which : all_cases) {
      EXPECT_EQ(personal_pronoun(persons[i].first, persons[i].second, which),
                forms[i][static_cast<std::size_t>(which)]);
    }
  }
  EXPECT_EQ(relative_pronoun(Gender::feminine, one, Case::dative), "der");
  EXPECT_EQ(relative_pronoun(Gender::masculine, one, Case::accusative), "den");
  EXPECT_EQ(relative_pronoun(Gender::neuter, several, Case::dative), "denen");
  EXPECT_EQ(reflexive_pronoun(Person::ich), "mich");
  EXPECT_EQ(reflexive_pronoun(Person::ihr), "euch");
  EXPECT_EQ(reflexive_pronoun(Person::sie), "sich");
}

struct Conjugation {
  const char* infinitive;
  std::array<const char*, 6> present;
  std::array<const char*, 6> past;
};

const std::vector<Conjugation> conjugations = {
    {"spielen",
     {"spiele", "spielst", "spielt", "spielen", "spielt", "spielen"},
     {"spielte", "spieltest", "spielte", "spielten", "spieltet", "spielten"}},
    {"arbeiten",
     {"arbeite", "arbeitest", "arbeitet", "arbeiten", "arbeitet", "arbeiten"},
     {"arbeitete", "arbeitetest", "arbeitete", "arbeiteten", "arbeitetet", "arbeiteten"}},
    {"öffnen",
     {"öffne", "öffnest", "öffnet", "öffnen", "öffnet", "öffnen"},
     {"öffnete", "öffnetest", "öffnete", "öffneten", "öffnetet", "öffneten"}},
    {"zeichnen",
     {"zeichne", "zeichnest", "zeichnet", "zeichnen", "zeichnet", "zeichnen"},
     {"zeichnete", "zeichnetest", "zeichnete", "zeichneten", "zeichnetet", "zeichneten"}},
    {"wohnen",
     {"wohne", "wohnst", "wohnt", "wohnen", "wohnt", "wohnen"},
     {"wohnte", "wohntest", "wohnte", "wohnten", "wohntet", "wohnten"}},
    {"lernen",
     {"lerne", "lernst", "lernt", "lernen", "lernt", "lernen"},
     {"lernte", "lerntest", "lernte", "lernten", "lerntet", "lernten"}},
    {"lächeln",
     {"lächle", "lächelst", "lächelt", "lächeln", "lächelt", "lächeln"},
     {"lächelte", "lächeltest", "lächelte", "lächelten", "lächeltet", "lächelten"}},
    {"klettern",
     {"klettere", "kletterst", "klettert", "klettern", "klettert", "klettern"},
     {"kletterte", "klettertest", "kletterte", "kletterten", "klettertet", "kletterten"}},
    {"tanzen",
     {"tanze", "tanzt", "tanzt", "tanzen", "tanzt", "tanzen"},
     {"tanzte", "tanztest", "tanzte", "tanzten", "tanztet", "tanzten"}},
    {"lesen",
     {"lese", "liest", "liest", "lesen", "lest", "lesen"},
     {"las", "lasest", "las", "lasen", "last", "lasen"}},
    {"essen",
     {"esse", "isst", "isst", "essen", "esst", "essen"},
     {"aß", "aßest", "aß", "aßen", "aßt", "aßen"}},
    {"geben",
     {"gebe", "gibst", "gibt", "geben", "gebt", "geben"},
     {"gab", "gabst", "gab", "gaben", "gabt", "gaben"}},
    {"fahren",
     {"fahre", "fährst", "fährt", "fahren", "fahrt", "fahren"},
     {"fuhr", "fuhrst", "fuhr", "fuhren", "fuhrt", "fuhren"}},
    {"waschen",
     {"wasche", "wäschst", "wäscht", "waschen", "wascht", "waschen"},
     {"wusch", "wuschst", "wusch", "wuschen", "wuscht", "wuschen"}},
    {"halten",
     {"halte", "hältst", "hält", "halten", "haltet", "halten"},
     {"hielt", "hieltest", "hielt", "hielten", "hieltet", "hielten"}},
    {"laden",
     {"lade", "lädst", "lädt", "laden", "ladet", "laden"},
     {"lud", "ludest", "lud", "luden", "ludet", "luden"}},
    {"finden",
     {"finde", "findest", "findet", "finden", "findet", "finden"},
     {"fand", "fandest", "fand", "fanden", "fandet", "fanden"}},
    {"denken",
     {"denke", "denkst", "denkt", "denken", "denkt", "denken"},
     {"dachte", "dachtest", "dachte", "dachten", "dachtet", "dachten"}},
    {"wissen",
     {"weiß", "weißt", "weiß", "wissen", "wisst", "wissen"},
     {"wusste", "wusstest", "wusste", "wussten", "wusstet", "wussten"}},
    {"mögen",
     {"mag", "magst", "mag", "mögen", "mögt", "mögen"},
     {"mochte", "mochtest", "mochte", "mochten", "mochtet", "mochten"}},
};

const GermanVerb* find_verb(std::string_view infinitive) {
  for (const Verb& verb : all_verbs()) {
    for (const GermanVerb& german : verb.german) {
      if (german.infinitive == infinitive) return &german;
    }
  }
  return nullptr;
}

void expect_conjugation(const GermanVerb& verb, const Conjugation& row) {
  for (std::size_t person = 0; person < 6; ++person) {
    EXPECT_EQ(present_form(verb, static_cast<Person>(person)), row.present[person]);
    EXPECT_EQ(past_form(verb, static_cast<Person>(person)), row.past[person]);
  }
}

TEST(GermanForms, VerbsFollowTheTables) {
  for (const Conjugation& row : conjugations) {
    const GermanVerb* verb = find_verb(row.infinitive);
    ASSERT_NE(verb, nullptr) << row.infinitive;
    expect_conjugation(*verb, row);
  }
  expect_conjugation(verb_sein(), {"sein",
                                   {"bin", "bist", "ist", "sind", "seid", "sind"},
                                   {"war", "warst", "war", "waren", "wart", "waren"}});
  expect_conjugation(verb_haben(), {"haben",
                                    {"habe", "hast", "hat", "haben", "habt", "haben"},
                                    {"hatte", "hattest", "hatte", "hatten", "hattet", "hatten"}});
  expect_conjugation(verb_werden(), {"werden",
                                     {"werde", "wirst", "wird", "werden", "werdet", "werden"},
                                     {"wurde", "wurdest", "wurde", "wurden", "wurdet", "wurden"}});
}

// The third person and the participle of every verb that changes its stem, with its auxiliary.
TEST(GermanForms, PrincipalPartsOfStrongVerbs) {
  const std::set<std::string> known = {"schläft schlief geschlafen",
                                       "singt sang gesungen",
                                       "schwimmt schwamm geschwommen",
                                       "lügt log gelogen",
                                       "schläft schlief eingeschlafen",
                                       "steht stand aufgestanden",
                                       "kommt kam angekommen",
                                       "trifft traf eingetroffen",
                                       "kommt kam zurückgekommen",
                                       "hält hielt angehalten",
                                       "springt sprang gesprungen",
                                       "isst aß gegessen",
                                       "frisst fraß gefressen",
                                       "geht ging gegangen",
                                       "läuft lief gelaufen",
                                       "rennt rannte gerannt",
                                       "fährt fuhr gefahren",
                                       "fliegt flog geflogen",
                                       "steigt stieg gestiegen",
                                       "kriecht kroch gekrochen",
                                       "kommt kam gekommen",
                                       "liegt lag gelegen",
                                       "steht stand gestanden",
                                       "sitzt saß gesessen",
                                       "wirft warf geworfen",
                                       "schmeißt schmiss geschmissen",
                                       "weiß wusste gewusst",
                                       "denkt dachte gedacht",
                                       "erfährt erfuhr erfahren",
                                       "sieht sah gesehen",
                                       "findet fand gefunden",
                                       "verliert verlor verloren",
                                       "trägt trug getragen",
                                       "trinkt trank getrunken",
                                       "liest las gelesen",
                                       "schreibt schrieb geschrieben",
                                       "vergisst vergaß vergessen",
                                       "spricht sprach gesprochen",
                                       "hilft half geholfen",
                                       "trifft traf getroffen",
                                       "ruft rief angerufen",
                                       "lädt lud eingeladen",
                                       "mag mochte gemocht",
                                       "kennt kannte gekannt",
                                       "fängt fing gefangen",
                                       "gewinnt gewann gewonnen",
                                       "schließt schloss geschlossen",
                                       "zieht zog angezogen",
                                       "wäscht wusch gewaschen",
                                       "schlägt schlug geschlagen",
                                       "hebt hob gehoben",
                                       "hebt hob hochgehoben",
                                       "schneidet schnitt geschnitten",
                                       "gießt goss gegossen",
                                       "gibt gab gegeben",
                                       "bringt brachte gebracht",
                                       "leiht lieh geliehen"};
  for (const Verb& verb : all_verbs()) {
    for (const GermanVerb& german : verb.german) {
      if (german.past.empty()) continue;
      const std::string parts = present_form(german, Person::er) + " " +
                                past_form(german, Person::er) + " " +
                                std::string(german.participle);
      EXPECT_TRUE(known.contains(parts)) << parts;
    }
  }
}

TEST(GermanForms, PrepositionsJoinArticles) {
  EXPECT_EQ(contraction("in", "dem"), "im");
  EXPECT_EQ(contraction("an", "dem"), "am");
  EXPECT_EQ(contraction("zu", "der"), "zur");
  EXPECT_EQ(contraction("in", "das"), "ins");
  EXPECT_EQ(contraction("von", "dem"), "vom");
  EXPECT_EQ(contraction("in", "der"), "");
  EXPECT_EQ(contraction("auf", "dem"), "");
}

TEST(GermanForms, CapitalLettersOfUmlauts) {
  EXPECT_EQ(capitalised("über"), "Über");
  EXPECT_EQ(capitalised("öffnet"), "Öffnet");
  EXPECT_EQ(capitalised("älter"), "Älter");
  EXPECT_EQ(capitalised("wer"), "Wer");
  EXPECT_EQ(capitalised("Hund"), "Hund");
  EXPECT_EQ(capitalised(""), "");
}

}  // namespace
}  // namespace heed::microworld::bilingual
