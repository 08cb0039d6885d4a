// Goods on stalls: the condition that an adjective gives a thing decides what is said of
// it, what it costs and what becomes of it.
// A day out with two words of several senses, each settled by what came before it.
// A letter: thanks for a present, whose adjectives decide what is said of it, and one word of
// several senses.
// Tales told at bedtime, about names that several bearers share: which one is meant was said when
// the tale began.
// Things lost and found: a short-range version of a mystery. A thing has an owner, and two lines
// later it is returned to the owner.
#include "microworld/kinds.h"

#include <array>
#include <string_view>
#include <vector>

#include "microworld/described.h"
#include "microworld/scenes.h"
#include "microworld/writer.h"

namespace heed::microworld {
namespace {

struct Kind {
  StoryKind kind;
  void (*tell)(Writer&);
};

constexpr std::array<Kind, story_kind_count> kinds = {{
    {StoryKind::creature, tell_creature},
    {StoryKind::market, tell_market},
    {StoryKind::outing, tell_outing},
    {StoryKind::letter, tell_letter},
    {StoryKind::tale, tell_tale},
    {StoryKind::finding, tell_finding},
    {StoryKind::mystery, tell_mystery},
    {StoryKind::album, tell_album},
}};

// Mysteries come most often because their clue is the hardest thing to learn; findings teach its
// pattern from nearby.
constexpr std::array<double, story_kind_count> kind_weights = {0.15, 0.07, 0.11, 0.05,
                                                               0.10, 0.12, 0.22, 0.18};

const Kind& chosen_kind(Writer& writer, std::span<const StoryKind> wanted) {
  if (wanted.empty()) {
    return kinds[writer.choose({.count = kind_weights.size(), .weights = kind_weights})];
  }
  std::vector<double> weights;
  for (const StoryKind kind : wanted) {
    weights.push_back(kind_weights[static_cast<std::size_t>(kind)]);
  }
  const std::size_t option = writer.choose({.count = weights.size(), .weights = weights});
  return kinds[static_cast<std::size_t>(wanted[option])];
}

// People with the pronouns that agree with them.

struct Person {
  std::string_view name;  // empty for the one who writes "I"
  std::string_view he, He, him, his;
};

inline constexpr Person narrator = {"", "I", "I", "me", "my"};

// The first half are women, the second half men.
constexpr std::array<std::string_view, 16> names = {
    "Anna", "Clara", "Emma", "Lucy", "Nora", "Ruth",  "Alice", "Mary",
    "Tom",  "Peter", "Jack", "Hugo", "Leo",  "Simon", "Felix", "Oliver"};

// Chooses a person and writes the name.
Person write_person(Writer& writer) {
  const std::size_t option = writer.pick(names);
  if (option < names.size() / 2) return {names[option], "she", "She", "her", "her"};
  return {names[option], "he", "He", "him", "his"};
}

// Slots {name} {he} {He} {him} {his} of a person.
void set_person(Slots& slots, const Person& person) {
  slots.set("name", person.name);
  slots.set("he", person.he);
  slots.set("He", person.He);
  slots.set("him", person.him);
  slots.set("his", person.his);
}

constexpr std::array<std::string_view, 6> tellers = {"Grandmother", "Grandfather", "Uncle Max",
                                                     "Aunt Rose",   "Father",      "Mother"};

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
  slots.set("thing_found", [&](Writer& w) { goods = write_goods(w, {.max_adjectives = 1}); });
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

void tell(Writer& writer, std::span<const StoryKind> wanted) {
  const Kind& chosen = chosen_kind(writer, wanted);
  writer.story().kind = chosen.kind;
  chosen.tell(writer);
}

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

void tell_tale(Writer& writer) {
  const Scene* first = nullptr;
  const Scene* second = nullptr;
  std::string_view teller;
  Goods thing;
  Slots slots = common_slots();
  slots.set("person", [&](Writer& w) { set_person(slots, write_person(w)); });
  slots.set("new_thing", [&](Writer& w) { thing = write_goods(w, {.max_adjectives = 1}); });
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

void tell_finding(Writer& writer) {
  say(writer, finding_opening, common_slots());
  for (int i = 0; i < 3; ++i) tell_one(writer);
}

}  // namespace heed::microworld
