// Things, creatures and places, and the story of two creatures that meet.
#include "microworld/described.h"

#include <span>
#include <string>
#include <utility>

#include "microworld/kinds.h"
#include "microworld/tables.h"
#include "microworld/writer.h"

namespace heed::microworld {
namespace {

const AdjectiveTable<Condition>& conditions() {
  static const AdjectiveTable<Condition> all("conditions", [](const TableRow& row) {
    return Condition{.adjectives = adjectives_of<3>(row[0]),
                     .tail = row[1],
                     .price = row[2],
                     .fate = row[3],
                     .thanks = row[4]};
  });
  return all;
}

// Where the adjectives of a thing come from: conditions [begin, end) for each of them.
struct Range {
  std::size_t begin, end;
};
using Form = std::array<Range, 2>;
constexpr Range any = {0, 6}, value = {0, 2}, size = {2, 4}, age = {4, 6};

constexpr std::array<Form, 3> forms_of_two = {{{value, size}, {value, age}, {size, age}}};

std::vector<Range> choose_form(Writer& writer, std::size_t max_adjectives) {
  static constexpr std::array<double, 4> weights = {4.0 / 7, 1.0 / 7, 1.0 / 7, 1.0 / 7};
  if (max_adjectives == 1) return {any};
  const std::size_t option = writer.choose({.count = weights.size(), .weights = weights});
  if (option == 0) return {any};
  const Form& form = forms_of_two[option - 1];
  return {form.begin(), form.end()};
}

constexpr Temper no_temper = {
    .adjectives = {},
    .tail = {},
    .moves = "(roamed|crossed|explored)",
    .reacts = "(stopped|waited|looked up)",
    .speech = "(Good day to you,|Where does this road go?|Have you come far?)",
    .says = "(said|asked)",
    .manner = "well"};

const AdjectiveTable<Temper>& tempers() {
  static const AdjectiveTable<Temper> all("tempers", [](const TableRow& row) {
    return Temper{.adjectives = adjectives_of<2>(row[0]),
                  .tail = row[1],
                  .moves = row[2],
                  .reacts = row[3],
                  .speech = row[4],
                  .says = row[5],
                  .manner = row[6]};
  });
  return all;
}

const AdjectiveTable<Coat>& coats() {
  static const AdjectiveTable<Coat> all("coats", [](const TableRow& row) {
    return Coat{adjectives_of<2>(row[0]), row[1]};
  });
  return all;
}

const AdjectiveTable<CreatureColour>& creature_colours() {
  static const AdjectiveTable<CreatureColour> all("colours", [](const TableRow& row) {
    return CreatureColour{adjectives_of<1>(row[0]), row[1]};
  });
  return all;
}

const AdjectiveTable<Land>& lands() {
  static const AdjectiveTable<Land> all("lands", [](const TableRow& row) {
    return Land{adjectives_of<2>(row[0]), row[1], row[2]};
  });
  return all;
}

constexpr std::array<std::string_view, 4> places = {"forest", "valley", "meadow", "wood"};

constexpr std::array<std::string_view, 12> animals = {"creature", "fox",   "wolf",   "bear",
                                                      "badger",   "hare",  "lynx",   "goat",
                                                      "pony",     "otter", "dragon", "beaver"};

}  // namespace

Goods write_goods(Writer& writer, const GoodsOptions& options) {
  constexpr std::size_t synonyms = AdjectiveTable<Condition>::synonyms;
  const std::span<const std::string_view> adjectives = conditions().adjectives();
  const std::vector<Range> form = choose_form(writer, options.max_adjectives);
  NounPhrase phrase{.nouns = things(), .except = options.except};
  for (const auto& [begin, end] : form) {
    phrase.adjectives.push_back({adjectives.subspan(begin * synonyms, (end - begin) * synonyms)});
  }
  const ChosenWords words = write_noun_phrase(writer, phrase);
  const std::size_t noun_end = writer.offset();

  std::vector<const Condition*> found;
  std::vector<std::string_view> tails;
  for (std::size_t i = 0; i < form.size(); ++i) {
    found.push_back(&conditions()[form[i].begin + words.adjectives[i] / synonyms]);
    tails.push_back(found[i]->tail);
  }
  write_tails(writer, tails);
  Goods goods{.condition = found[0], .noun = words.noun};
  if (form.size() == 1 && writer.alive()) {
    goods.evidence = {writer.story().adjectives.back().adjectives.front(),
                      {noun_end + 1, writer.offset()}};
  }
  return goods;
}

void write_fate(Writer& writer, const Goods& goods, const Slots& slots) {
  const std::size_t begin = writer.offset();
  say(writer, goods.condition->fate, slots);
  if (!writer.alive() || goods.evidence.empty()) return;
  // The word before the first that no other condition has.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> decided = {
      {{" and hid it", " from"}, {" and", " used"}, {" and", " smiled"}}};
  const std::string_view text = std::string_view(writer.story().text).substr(begin);
  for (const auto& [before, answer] : decided) {
    if (!text.starts_with(std::string(before) + std::string(answer))) continue;
    const std::size_t end = begin + before.size();
    const std::size_t word = begin + before.rfind(' ') + 1;
    writer.story().evidence.push_back({.subject = "fate",
                                       .word = {word, end},
                                       .evidence = goods.evidence,
                                       .answer = {end, end + answer.size()}});
  }
}

// Two creatures meet. The adjectives before a creature decide how it looks, walks and speaks; those
// before the place decide what is to be seen there.
Creature write_creature(Writer& writer, const CreatureOptions& options) {
  const std::size_t which = writer.choose(7) + 1;
  NounPhrase phrase{.article = options.article, .nouns = animals, .except = options.except};
  if (which & 1) phrase.adjectives.push_back({tempers().adjectives()});
  if (which & 2) phrase.adjectives.push_back({coats().adjectives()});
  if (which & 4) phrase.adjectives.push_back({creature_colours().adjectives(), Join::space});
  const ChosenWords words = write_noun_phrase(writer, phrase);

  Creature creature{.temper = &no_temper, .noun = words.noun};
  creature.noun_span = {writer.offset() - words.noun.size(), writer.offset()};
  const std::size_t marks = writer.story().adjectives.size();
  if ((which & 1) && marks > 0) {
    creature.temper_span = writer.story().adjectives.back().adjectives.front();
  }
  std::vector<std::string_view> tails;
  auto next = words.adjectives.begin();
  if (which & 1) {
    creature.temper = &tempers().row_of(*next++);
    tails.push_back(creature.temper->tail);
  }
  if (which & 2) tails.push_back(coats().row_of(*next++).tail);
  if (which & 4) tails.push_back(creature_colours().row_of(*next++).tail);
  if (options.tails) write_tails(writer, tails);
  return creature;
}

void write_manner(Writer& writer, const Creature& creature) {
  writer.write("The ");
  const Span noun = writer.write(creature.noun);
  writer.write(" ");
  const Span slept = writer.write("slept");
  writer.write(" ");
  writer.write(creature.temper->manner);
  if (creature.temper == &no_temper) return;
  writer.story().evidence.push_back({.subject = "manner",
                                     .word = slept,
                                     .evidence = {creature.temper_span, noun},
                                     .answer = {slept.end, writer.offset()}});
}

Place write_place(Writer& writer, const PlaceOptions& options) {
  const ChosenWords words = write_noun_phrase(
      writer,
      {.article = Article::definite, .adjectives = {{lands().adjectives()}}, .nouns = places});
  const Land& land = lands().row_of(words.adjectives[0]);
  if (options.tail) write_tails(writer, {land.tail});
  return {&land, words.noun};
}

void tell_creature(Writer& writer) {
  Creature hero, stranger;
  Place place;
  Goods first, second;
  Slots slots = common_slots();
  const auto set_text = [&](std::string_view name, auto text) {
    slots.set(name, [&slots, text](Writer& w) { say(w, text(), slots); });
  };
  slots.set("new_hero", [&](Writer& w) { hero = write_creature(w); });
  set_text("hero", [&] { return hero.noun; });
  set_text("hero_moves", [&] { return hero.temper->moves; });
  set_text("hero_reacts", [&] { return hero.temper->reacts; });
  set_text("hero_speech", [&] { return hero.temper->speech; });
  set_text("hero_says", [&] { return hero.temper->says; });
  slots.set("new_place", [&](Writer& w) { place = write_place(w); });
  set_text("place", [&] { return place.noun; });
  set_text("night", [&] { return place.land->night; });
  slots.set("new_stranger",
            [&](Writer& w) { stranger = write_creature(w, {.except = {hero.noun}}); });
  set_text("stranger", [&] { return stranger.noun; });
  set_text("stranger_reacts", [&] { return stranger.temper->reacts; });
  set_text("stranger_speech", [&] { return stranger.temper->speech; });
  set_text("stranger_says", [&] { return stranger.temper->says; });
  slots.set("new_first", [&](Writer& w) { first = write_goods(w); });
  slots.set("new_second", [&](Writer& w) { second = write_goods(w, {.except = {first.noun}}); });
  set_text("first", [&] { return first.noun; });
  set_text("second", [&] { return second.noun; });
  slots.set("first_fate", [&](Writer& w) { write_fate(w, first, slots); });
  slots.set("second_fate", [&](Writer& w) { write_fate(w, second, slots); });

  slots.set("slept", [&](Writer& w) { write_manner(w, w.choose(2) == 0 ? hero : stranger); });

  say(writer,
      "(One morning|Late one evening|Long ago|Once upon a time|Before dawn|Early one {weekday}), "
      "{new_hero} {hero_moves} {new_place}. ",
      slots);
  say(writer,
      "(Beside|Near|Behind|Under) (a stone bridge|a hollow tree|a ruined house|a broken gate|a "
      "pile of wood|an empty cart) it met {new_stranger}, which {stranger_reacts}. "
      "\"{stranger_speech}\" {stranger_says} the {stranger}. The {hero} {hero_reacts}. "
      "\"{hero_speech}\" it {hero_says}.\n",
      slots);
  say(writer,
      "(In the grass|Behind a rock|Among the leaves|Under a stone) they (found|dug up|came upon) "
      "{new_first} beside {new_second}. (The {hero} took the {first}{first_fate}, and the "
      "{stranger} "
      "took the {second}{second_fate}|The {stranger} took the {first}{first_fate}, and the {hero} "
      "took the {second}{second_fate}). That night in the {place} {night}. {slept}.",
      slots);
}

}  // namespace heed::microworld
