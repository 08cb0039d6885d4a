// A day out with two words of several senses, each settled by what came before it.
#include <string_view>
#include <vector>

#include "microworld/goods.h"
#include "microworld/kinds.h"
#include "microworld/lexicon.h"
#include "microworld/people.h"
#include "microworld/phrase.h"
#include "microworld/scenes.h"

namespace heed::microworld {

void tell_outing(Writer& writer) {
  const Scene* morning = nullptr;
  const Scene* afternoon = nullptr;
  std::string_view companion;
  Goods found;
  Slots slots = common_slots();
  slots.set("person", [&](Writer& w) { set_person(slots, write_person(w)); });
  slots.set("companion", [&](Writer& w) { companion = roles()[w.pick(roles())]; });
  slots.set("second_companion", [&](Writer& w) {
    std::vector<std::string_view> others;
    for (std::string_view role : roles()) {
      if (role != companion) others.push_back(role);
    }
    w.pick(others);
  });
  slots.set("companion_again", [&](Writer& w) { w.write(companion); });
  slots.set("found", [&](Writer& w) { found = write_goods(w); });
  slots.set("fate", [&](Writer& w) { say(w, found.condition->fate, slots); });
  slots.set("morning_context",
            [&](Writer& w) { morning = &write_context(w, Reading::sense, slots); });
  slots.set("morning_scene", [&](Writer& w) { write_scene(w, *morning, Reading::sense, slots); });
  slots.set("afternoon_context", [&](Writer& w) {
    afternoon = &write_context(w, Reading::sense, slots, morning->word);
  });
  slots.set("afternoon_scene",
            [&](Writer& w) { write_scene(w, *afternoon, Reading::sense, slots); });
  slots.set("morning_word", [&](Writer& w) { write_recalled(w, *morning); });
  slots.set("afternoon_word", [&](Writer& w) { write_recalled(w, *afternoon); });

  say(writer,
      "{weekday} was (a holiday|cold and bright|grey and windy|warm and dry|dark and rainy), and "
      "{person} (put on|chose|looked for) a {colour} (hat|coat|scarf). In the "
      "morning {he} and the {companion} {morning_context}. {morning_scene} \"(What a day|Look at "
      "that|Who would believe it|This is better than school)!\" (said|cried|laughed) the "
      "{companion_again}.\n",
      slots);
  say(writer,
      "(After lunch|In the afternoon|Later that day) {he} and the {second_companion} "
      "{afternoon_context}. {afternoon_scene} "
      "(On the way home|Under a tree|Behind a gate|Near the road) {he} found {found}. The "
      "{companion_again} took it{fate}. ",
      slots);
  say(writer,
      "(That night|In bed|When the lamp was out,) {he} dreamed of the {morning_word} and the "
      "{afternoon_word}.",
      slots);
}

}  // namespace heed::microworld
