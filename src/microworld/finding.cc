// Things lost and found: a short-range version of a mystery. A thing has an owner, and two lines
// later it is returned to the owner.
#include <array>
#include <string_view>

#include "microworld/goods.h"
#include "microworld/kinds.h"
#include "microworld/lexicon.h"
#include "microworld/phrase.h"

namespace heed::microworld {
namespace {

constexpr std::string_view finding_opening =
    "On {weekday} three things were lost and found in (Millbrook|Oldford|Harwick|Saltport|"
    "Greenhill|Kingsbury).";

constexpr std::string_view finding =
    "\nThe {passer}, the {passer} and the {passer} came (down the road|over the bridge|out of the "
    "church|to the well). (Beside the gate|On the step|Under a tree|By the well) lay {thing_found}"
    "(; it belonged|, and it belonged|, which belonged) to the {owner}. They (called|asked|sent "
    "for) "
    "the {owner_again}, the {other} (cleaned|wrapped|admired) the {noun}, and so the {noun} came "
    "back to the {owner_again}.";

void tell_one(Writer& writer) {
  std::array<std::string_view, 3> passers;
  std::size_t count = 0;
  std::string_view owner;
  Goods goods;
  WithoutRepeats strangers(roles());
  WithoutRepeats others({});
  Slots slots;
  slots.set("passer", [&](Writer& w) { passers[count++] = strangers.write(w); });
  slots.set("thing_found", [&](Writer& w) { goods = write_goods(w, {.most_adjectives = 1}); });
  slots.set("noun", [&](Writer& w) { w.write(goods.noun); });
  slots.set("owner", [&](Writer& w) {
    const std::size_t chosen = w.pick(passers);
    owner = passers[chosen];
    const std::array<std::string_view, 2> rest = {passers[(chosen + 1) % 3],
                                                  passers[(chosen + 2) % 3]};
    others = WithoutRepeats(rest);
  });
  slots.set("other", [&](Writer& w) { others.write(w); });
  slots.set("owner_again", [&](Writer& w) { w.write(owner); });
  say(writer, finding, slots);
}

}  // namespace

void tell_finding(Writer& writer) {
  say(writer, finding_opening, common_slots());
  for (int i = 0; i < 3; ++i) tell_one(writer);
}

}  // namespace heed::microworld
