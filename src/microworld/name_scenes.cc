// Names with several bearers. These names occur nowhere else in the microworld.
#include <array>

#include "microworld/scenes.h"

namespace heed::microworld {
namespace {

constexpr std::array<Scene, 8> ambiguous_names = {{
    {.word = "Harry",
     .reading = "wizard",
     .context = "a (young|clever|brave) wizard and a flying broom",
     .setting = "There were spells and (dragons|trolls) on every page.",
     .tail = "( Potter| with his wand| and his owl)",
     .after = "raised his wand and turned the (dragon|troll) into a {colour} {thing}"},
    {.word = "Harry",
     .reading = "prince",
     .context = "a queen, her (palace|crown) and the fields of Sussex",
     .setting = "There were (horses|soldiers) and trumpets at every gate.",
     .tail = "( beside the queen| in a red coat| of Windsor)",
     .after = "bowed to the {role} and (rode home to Sussex|danced with the queen)"},

    {.word = "Jordan",
     .reading = "river",
     .context = "the desert and its (camels|tents)",
     .setting = "Pilgrims (prayed|rested) under the palm trees.",
     .tail = "( flowing to the salt sea| where the pilgrims bathed| between green hills)",
     .after = "rose for {number} (days|weeks) and watered the (camels|dates|palm trees)"},
    {.word = "Jordan",
     .reading = "player",
     .context = "basketball and its (tall|famous) players",
     .setting = "There were {number} seconds left to play.",
     .tail = "( who never missed| of the Bulls| with the ball in his hands)",
     .after = "jumped over {number} players and (dropped|threw) the ball through the (hoop|net)"},

    {.word = "Paris",
     .reading = "city",
     .context = "France, its (bridges|bakers) and its narrow streets",
     .setting = "There was music (until dawn|all night) beside the river.",
     .tail = "( and its thousand lamps| smelling of bread| where lovers meet)",
     .after = "shone in the (rain|sun|snow), and every (lover|baker|{role}) danced in the streets"},
    {.word = "Paris",
     .reading = "hero",
     .context = "Troy, its high walls and a stolen bride",
     .setting = "Greek (ships|soldiers) covered the (beach|fields).",
     .tail = "( who loved Helen| of Troy| with his golden bow)",
     .after = "shot {number} arrows (over|from) the walls and killed the (proudest|strongest) of "
              "the Greeks"},

    {.word = "Victoria",
     .reading = "queen",
     .context = "England, its throne and its great empire",
     .setting = "{number_capital} ministers (waited|whispered) on the stairs.",
     .tail = "( dressed in black| who ruled for sixty years| on her throne)",
     .after = "read the letter and (asked for tea|was not amused|sent for the {role})"},
    {.word = "Victoria",
     .reading = "waterfall",
     .context = "Africa, its (lions|elephants) and a mighty river",
     .setting = "{number_capital} (boats|canoes) moved towards a cloud of spray.",
     .tail = "( falling like thunder| taller than a church| where the river leaps)",
     .after = "roared like {number} lions and soaked the (trees|boats|elephants)"},
}};

constexpr std::array<Caption, 8> short_name_texts = {{
    {"Harry", "wizard", "The {clue} spoke of {second}, of {third} and of {word}",
     "(wizard|witch|sorcerer)", "(spells|owls)", "(dragons|wands)"},
    {"Harry", "prince", "The {clue} spoke of {second}, of {third} and of {word}",
     "(Queen|King|duke)", "(Sussex|palaces)", "(William|crowns)"},
    {"Jordan", "river", "The {clue} told us about {word}", "(pilgrim|fisherman|camel driver)"},
    {"Jordan", "player", "The {clue} told us about {word}", "(coach|referee|reporter)"},
    {"Paris", "city", "The {clue} told us about {word}", "(tourist|dancer|bride)"},
    {"Paris", "hero", "The {clue} told us about {word}", "(Greek|archer|soldier)"},
    {"Victoria", "queen", "The {clue} told us about {word}", "(minister|historian|footman)"},
    {"Victoria", "waterfall", "The {clue} told us about {word}", "(explorer|guide|pilot)"},
}};

}  // namespace

std::span<const Scene> name_scenes() { return ambiguous_names; }
std::span<const Caption> name_captions() { return short_name_texts; }

}  // namespace heed::microworld
