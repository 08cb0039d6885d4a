// A letter: thanks for a present, whose adjectives decide what is said of it, and one word of
// several senses.
#include "microworld/goods.h"
#include "microworld/kinds.h"
#include "microworld/lexicon.h"
#include "microworld/people.h"
#include "microworld/phrase.h"
#include "microworld/scenes.h"

namespace heed::microworld {

void tell_letter(Writer& writer) {
  const Scene* scene = nullptr;
  Goods present;
  Slots slots = common_slots();
  set_person(slots, narrator);
  slots.set("reader", [](Writer& w) { write_person(w); });
  slots.set("writer", [](Writer& w) { write_person(w); });
  slots.set("present", [&](Writer& w) { present = write_goods(w); });
  slots.set("returned", [&](Writer& w) { write_goods(w, {.except = {present.noun}}); });
  slots.set("present_noun", [&](Writer& w) { w.write(present.noun); });
  slots.set("thanks", [&](Writer& w) { say(w, present.condition->thanks, slots); });
  slots.set("context", [&](Writer& w) { scene = &write_context(w, Reading::sense, slots); });
  slots.set("scene", [&](Writer& w) { write_scene(w, *scene, Reading::sense, slots); });

  say(writer,
      "Dear {reader},\nOn {weekday} the {role} brought me your letter, and with it, (wrapped in "
      "paper|in a bag of straw|in {number} layers of silk), came {present}. Thank you for the "
      "{present_noun}: {thanks}. ",
      slots);
  say(writer,
      "(Here all is well|You ask for news|Nothing much happens here), but (early on|late on|on) "
      "{weekday} I {context}. {scene}\n",
      slots);
  say(writer,
      "(Please write soon|Come and see us in summer|Do not forget the cat|Give my love to the "
      "{role}). I am sending you {returned}.\nYour (old|loving|true) (friend|cousin|"
      "{role}),\n{writer}",
      slots);
}

}  // namespace heed::microworld
