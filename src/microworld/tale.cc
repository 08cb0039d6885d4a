// Tales told at bedtime, about names that several bearers share: which one is meant was said when
// the tale began.
#include <array>
#include <string_view>

#include "microworld/creatures.h"
#include "microworld/goods.h"
#include "microworld/kinds.h"
#include "microworld/lexicon.h"
#include "microworld/people.h"
#include "microworld/phrase.h"
#include "microworld/scenes.h"

namespace heed::microworld {
namespace {

constexpr std::array<std::string_view, 6> tellers = {"Grandmother", "Grandfather", "Uncle Max",
                                                     "Aunt Rose",   "Father",      "Mother"};

}  // namespace

void tell_tale(Writer& writer) {
  const Scene* first = nullptr;
  const Scene* second = nullptr;
  std::string_view teller;
  Goods thing;
  Slots slots = common_slots();
  slots.set("person", [&](Writer& w) { set_person(slots, write_person(w)); });
  slots.set("new_thing", [&](Writer& w) { thing = write_goods(w, {.most_adjectives = 1}); });
  slots.set("thing_noun", [&](Writer& w) { w.write(thing.noun); });
  slots.set("toy", [](Writer& w) { write_creature(w); });
  slots.set("first_context", [&](Writer& w) { first = &write_context(w, Reading::name, slots); });
  slots.set("first_scene", [&](Writer& w) { write_scene(w, *first, Reading::name, slots); });
  slots.set("second_context",
            [&](Writer& w) { second = &write_context(w, Reading::name, slots, first->word); });
  slots.set("second_scene", [&](Writer& w) { write_scene(w, *second, Reading::name, slots); });
  slots.set("first_name", [&](Writer& w) { write_marked(w, *first, Reading::name); });
  slots.set("second_name", [&](Writer& w) { write_marked(w, *second, Reading::name); });
  slots.set("teller", [&](Writer& w) { teller = tellers[w.pick(tellers)]; });
  slots.set("teller_again", [&](Writer& w) { w.write(teller); });

  say(writer,
      "(One rainy evening|One {weekday} evening|After supper|When the lamps were lit), {teller} "
      "put on the table {new_thing}, and told {person} about {first_context}. {first_scene}\n",
      slots);
  say(writer,
      "\"(Another|One more|Do not stop|Tell me more)!\" (cried|begged|said) {name} (from the "
      "floor|from under the table|with shining eyes|through the door). So {teller_again} (smiled|"
      "sighed|laughed|poured some tea|looked at the {thing_noun}) and told {him} about "
      "{second_context}. {second_scene}\n",
      slots);
  say(writer,
      "(The candle burned low|A dog barked|The fire was out|Rain ran down the window|The house was "
      "still), and {name} slept beside {toy}, dreaming of {first_name} and {second_name}.",
      slots);
}

}  // namespace heed::microworld
