// Two creatures meet. The adjectives before a creature decide how it looks, walks and speaks; those
// before the place decide what is to be seen there.
#include "microworld/creatures.h"

#include <utility>

#include "microworld/goods.h"
#include "microworld/kinds.h"
#include "microworld/tables.h"
#include "microworld/writer.h"

namespace heed::microworld {
namespace {

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
