// Goods on stalls: the condition that an adjective gives a thing decides what is said of
// it, what it costs and what becomes of it.
#include <array>
#include <string_view>

#include "microworld/goods.h"
#include "microworld/kinds.h"
#include "microworld/lexicon.h"
#include "microworld/people.h"
#include "microworld/phrase.h"

namespace heed::microworld {

void tell_market(Writer& writer) {
  std::array<Goods, 3> goods;
  std::size_t bought = 0;
  Slots slots = common_slots();
  const auto set_text = [&](std::string_view name, auto text) {
    slots.set(name, [&slots, text](Writer& w) { say(w, text(), slots); });
  };
  slots.set("person", [&](Writer& w) { set_person(slots, write_person(w)); });
  slots.set("new_first", [&](Writer& w) { goods[0] = write_goods(w); });
  slots.set("new_second",
            [&](Writer& w) { goods[1] = write_goods(w, {.except = {goods[0].noun}}); });
  slots.set("new_third", [&](Writer& w) {
    goods[2] = write_goods(w, {.except = {goods[0].noun, goods[1].noun}});
  });
  slots.set("wanted", [&](Writer& w) {
    const std::array<std::string_view, 3> nouns = {goods[0].noun, goods[1].noun, goods[2].noun};
    bought = w.pick(nouns);
  });
  set_text("bought", [&] { return goods[bought].noun; });
  set_text("price", [&] { return goods[bought].condition->price; });
  set_text("fate", [&] { return goods[bought].condition->fate; });

  say(writer,
      "{weekday} was market day in (Millbrook|Oldford|Harwick|Saltport|Greenhill|Kingsbury), and "
      "the square smelled of (hot|fresh) (bread|pie|milk|soup|tea). {person} came (early|late|on "
      "foot|by boat|by cart) with (a bag of coins|an empty bag|the {role}|{number} crowns). ",
      slots);
  say(writer,
      "On the (first|nearest|longest) stall stood {new_first} beside {new_second}. On the "
      "(last|next|smallest) stall, (between|behind|among) the "
      "(pears|plums|beans|roses|hats), stood {new_third}.\n",
      slots);
  say(writer,
      "\"How much is the {wanted}?\" asked {name}. \"{price},\" said the (old man|old woman|young "
      "man|young woman) (behind the stall|without looking up|in the {colour} hat). {He} (counted "
      "to {number}|rubbed {his} nose|looked at the sky|sighed) and (paid|nodded). Then {he} took "
      "the {bought}{fate}. ",
      slots);
  say(writer,
      "On the way home {he} met the {role}, who (asked|could not guess|wanted to know) where the "
      "{bought} had come from. (Nobody believed the answer|\"From the market,\" said {name}|{He} "
      "only smiled).",
      slots);
}

}  // namespace heed::microworld
