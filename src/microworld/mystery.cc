// A murder. One sentence near the beginning names the owner of what lay by the body; nothing else
// depends on who did it until the story's last word.
#include <array>
#include <string_view>
#include <utility>

#include "microworld/described.h"
#include "microworld/kinds.h"
#include "microworld/tables.h"
#include "microworld/writer.h"

namespace heed::microworld {
namespace {

struct Weather {
  std::array<std::string_view, 1> adjectives;
  std::string_view later;
};

const AdjectiveTable<Weather>& weathers() {
  static const AdjectiveTable<Weather> all("weathers", [](const TableRow& row) {
    return Weather{adjectives_of<1>(row[0]), row[1]};
  });
  return all;
}

constexpr std::array<std::string_view, 6> inspectors = {"Inspector Finch", "Inspector Gray",
                                                        "Inspector Bell",  "Inspector Moss",
                                                        "Inspector Pike",  "Inspector Dove"};

constexpr std::string_view mystery_opening =
    "It was a {weather} (night|evening) at (Ashby|Ravenwood|Thornfield|Blackwater|Marlow|Kestrel) "
    "(Hall|Manor|House|Lodge). (Three guests had come to supper|Three people sat by the fire|Three "
    "strangers had met there): the {new_suspect}, the {new_suspect} and the {new_suspect}. At "
    "(eight|nine|ten|eleven) (Lord|Lady|Colonel|Judge) (Vane|Thorpe|Harding|Winter|Locke) was "
    "found dead in the "
    "{room}. ";

constexpr std::string_view clue =
    "(Beside the body|On the floor|Under a chair|Behind the door|By the window) lay {belonging}(; "
    "it belonged|, and it belonged|, which belonged) to the {owner}.";

constexpr std::string_view arrival =
    "\n(Before midnight|Within the hour|At dawn) {inspector} came (by boat|by cart|on foot|on a "
    "horse|in a black car) and (questioned everybody|spoke to them one by one|listened with closed "
    "eyes). Outside, {later_weather}. ";

// Everybody has an alibi, the murderer too: only the clue tells them apart.
constexpr std::string_view alibi =
    "The {witness} (said|cried|answered|whispered|declared), \"I was (reading|asleep|writing "
    "letters|playing cards|lighting the fire|looking for the cat|counting spoons|mending a chair) "
    "in the {room} (all evening|until (nine|ten|midnight)|when the clock stopped|with the door "
    "shut).\"";

constexpr std::string_view search =
    "They searched the {two_rooms}, but found only {other_thing} and (a dead moth|an empty glass|"
    "half a candle|a torn letter|an old book). At (breakfast|supper) nobody (touched|finished) the "
    "(soup|pie|fish|bread), and the {any_suspect} (stared|smiled) at the "
    "(window|fire|clock|salt). ";

constexpr std::string_view conclusion =
    "\"(A house remembers everything|Truth is a patient guest|Small things speak loudest|Even "
    "silence leaves a mark),\" said {inspector_again} to the {any_suspect}. (At last|Then|Without "
    "a "
    "word) the {belonging_noun} was laid on the table. (Its owner had lied to everybody|Only its "
    "owner could have been there|Its owner turned quite white), and therefore the murderer was "
    "the ";

}  // namespace

void tell_mystery(Writer& writer) {
  Culprit culprit;
  std::array<std::string_view, 3> suspects;
  std::string_view inspector;
  Goods belonging;
  const Weather* weather = nullptr;
  Slots slots = common_slots();
  WithoutRepeats strangers(roles());
  slots.set("weather",
            [&](Writer& w) { weather = &weathers().row_of(w.pick(weathers().adjectives())); });
  slots.set("later_weather", [&](Writer& w) { say(w, weather->later, slots); });
  slots.set("new_suspect", [&](Writer& w) {
    const std::string_view suspect = strangers.write(w);
    suspects[culprit.suspects.size()] = suspect;
    culprit.suspects.emplace_back(suspect);
  });
  slots.set("any_suspect", [&](Writer& w) { w.pick(suspects); });
  slots.set("belonging", [&](Writer& w) { belonging = write_goods(w, {.max_adjectives = 1}); });
  slots.set("belonging_noun", [&](Writer& w) { w.write(belonging.noun); });
  slots.set("other_thing",
            [&](Writer& w) { write_goods(w, {.except = {belonging.noun}, .max_adjectives = 1}); });
  slots.set("owner", [&](Writer& w) {
    culprit.name = suspects[w.pick(suspects)];
    culprit.clue_name = {w.offset() - culprit.name.size(), w.offset()};
  });
  slots.set("inspector", [&](Writer& w) { inspector = inspectors[w.pick(inspectors)]; });
  slots.set("inspector_again", [&](Writer& w) { w.write(inspector); });
  slots.set("two_rooms", [](Writer& w) {
    WithoutRepeats two(rooms());
    two.write(w);
    w.write(" and the ");
    two.write(w);
  });

  say(writer, mystery_opening, slots);
  const std::size_t clue_begin = writer.offset();
  say(writer, clue, slots);
  culprit.clue = {clue_begin, writer.offset()};
  say(writer, arrival, slots);

  WithoutRepeats witnesses(suspects);
  slots.set("witness", [&](Writer& w) { witnesses.write(w); });
  slots.set("alibi", alibi);
  say(writer, "{alibi} {alibi} {alibi}\n", slots);

  say(writer, search, slots);
  say(writer, conclusion, slots);
  culprit.answer = writer.write(culprit.name);
  const std::size_t space = culprit.answer.begin - 1;  // "the" stands before it
  writer.story().evidence.push_back({.subject = "culprit",
                                     .word = {space - 3, space},
                                     .evidence = {culprit.clue_name},
                                     .answer = {space, culprit.answer.end}});
  writer.write(".");
  writer.story().culprit = std::move(culprit);
}

}  // namespace heed::microworld
