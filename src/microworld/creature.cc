// Two creatures meet. The adjectives before a creature decide how it looks, walks and speaks; those
// before the place decide what is to be seen there.
#include <string_view>

#include "microworld/creatures.h"
#include "microworld/goods.h"
#include "microworld/kinds.h"
#include "microworld/lexicon.h"
#include "microworld/phrase.h"

namespace heed::microworld {
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
