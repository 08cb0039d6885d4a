// Two creatures meet. The adjectives before a creature decide how it walks, looks and speaks; those
// before the place decide what is to be seen there.
#include <array>
#include <utility>

#include "microworld/goods.h"
#include "microworld/kinds.h"
#include "microworld/lexicon.h"
#include "microworld/phrase.h"

namespace heed::microworld {
namespace {

struct Temper {
  std::array<std::string_view, 3> adjectives;
  std::string_view moves;   // before the place
  std::string_view reacts;  // at a meeting
  std::string_view speech;  // in quotation marks
  std::string_view says;
};

constexpr std::array<Temper, 5> tempers = {{
    {.adjectives = {"fierce", "savage", "angry"},
     .moves = "(prowled through|stalked across|stormed into)",
     .reacts = "(growled|snarled|showed its teeth)",
     .speech = "(Out of my way|This path is mine|I could eat you whole)!",
     .says = "(roared|hissed)"},
    {.adjectives = {"timid", "shy", "frightened"},
     .moves = "(crept through|tiptoed across|slipped into)",
     .reacts = "(trembled|shivered|hid its face)",
     .speech = "(Please do not hurt me,|I heard a noise,|May I hide with you?)",
     .says = "(whispered|squeaked)"},
    {.adjectives = {"merry", "playful", "cheerful"},
     .moves = "(danced through|skipped across|bounced into)",
     .reacts = "(laughed|giggled|clapped its paws)",
     .speech = "(Come and dance with me,|What a lovely day,|I know a song,)",
     .says = "(sang|cried)"},
    {.adjectives = {"weary", "sleepy", "tired"},
     .moves = "(plodded through|limped across|shuffled into)",
     .reacts = "(yawned|sighed|rubbed its eyes)",
     .speech = "(I have walked since dawn,|My feet are like lead,|Is there a bed near here?)",
     .says = "(mumbled|groaned)"},
    {.adjectives = {"proud", "noble", "haughty"},
     .moves = "(strode through|marched across|paraded into)",
     .reacts = "(raised its nose|bowed stiffly|nodded coldly)",
     .speech = "(My mother was a queen,|I do not talk to strangers,|You may bow to me,)",
     .says = "(declared|announced)"},
}};

constexpr Temper no_temper = {
    .adjectives = {},
    .moves = "(roamed|crossed|explored)",
    .reacts = "(stopped|waited|looked up)",
    .speech = "(Good day to you,|Where does this road go?|Have you come far?)",
    .says = "(said|asked)"};

struct Coat {
  std::array<std::string_view, 3> adjectives;
  std::string_view detail;
};

constexpr std::array<Coat, 3> coats = {{
    {{"fluffy", "woolly", "downy"}, "Its coat was as soft as (a pillow|moss|a cloud)"},
    {{"shaggy", "bristly", "spiny"}, "Its coat was as rough as (a brush|a hedge|thorns)"},
    {{"sleek", "glossy", "silky"}, "Its coat was as smooth as (glass|water|ice)"},
}};

struct Colour {
  std::array<std::string_view, 1> adjectives;
  std::string_view likeness;
};

constexpr std::array<Colour, 8> creature_colours = {{
    {{"red"}, "(a rose|fire)"},
    {{"blue"}, "(the summer sky|deep water)"},
    {{"green"}, "(new grass|a leaf)"},
    {{"golden"}, "(honey|a new coin)"},
    {{"white"}, "(milk|fresh snow)"},
    {{"black"}, "(coal|ink)"},
    {{"grey"}, "(ash|old stone)"},
    {{"brown"}, "(toast|dry earth)"},
}};

struct Land {
  std::array<std::string_view, 3> adjectives;
  std::string_view clause;
  std::string_view night;
};

constexpr std::array<Land, 4> lands = {{
    {{"verdant", "leafy", "mossy"},
     "where (ferns|bluebells|roses) grew (under every tree|beside the path|as high as a gate)",
     "(the leaves whispered above them|an owl sang to them|they slept on soft moss)"},
    {{"snowy", "frozen", "icy"},
     "where every (stream|leaf|stone) had turned to (ice|glass|silver)",
     "(the ice rang like bells|they slept under the snow|the snow shone like silver)"},
    {{"dusty", "dry", "thirsty"},
     "where no rain had fallen for {number} (weeks|months|years)",
     "(the ground was still warm|they dreamed of rain|dust covered the moon)"},
    {{"misty", "foggy", "gloomy"},
     "where shapes moved like (ghosts|smoke|ships) (in the dark|between the trees)",
     "(they could not see the moon|the fog covered them|they dreamed of ghosts)"},
}};

constexpr std::array<std::string_view, 6> places = {"forest", "valley", "meadow",
                                                    "moor",   "wood",   "island"};

constexpr std::array<std::string_view, 12> animals = {"creature", "fox",   "wolf",   "bear",
                                                      "badger",   "hare",  "lynx",   "goat",
                                                      "pony",     "otter", "dragon", "beaver"};

constexpr auto temper_adjectives = all_adjectives(tempers);
constexpr auto coat_adjectives = all_adjectives(coats);
constexpr auto colour_adjectives = all_adjectives(creature_colours);
constexpr auto land_adjectives = all_adjectives(lands);

struct Creature {
  const Temper* temper = &no_temper;
  const Coat* coat = nullptr;
  const Colour* colour = nullptr;
  std::string_view noun;
};

// One to three adjectives: temper, coat and colour, any of them absent but not all.
Creature write_creature(Writer& writer, std::vector<std::string_view> except) {
  const std::size_t which = writer.choose(7) + 1;
  NounPhrase phrase{.nouns = animals, .except = std::move(except)};
  if (which & 1) phrase.adjectives.push_back({temper_adjectives});
  if (which & 2) phrase.adjectives.push_back({coat_adjectives});
  if (which & 4) phrase.adjectives.push_back({colour_adjectives, Join::space});
  const ChosenWords words = write_noun_phrase(writer, phrase);

  Creature creature{.noun = words.noun};
  auto next = words.adjectives.begin();
  if (which & 1) creature.temper = &tempers[*next++ / 3];
  if (which & 2) creature.coat = &coats[*next++ / 3];
  if (which & 4) creature.colour = &creature_colours[*next++];
  return creature;
}

const Land& write_place(Writer& writer) {
  const ChosenWords words = write_noun_phrase(
      writer, {.article = Article::definite, .adjectives = {{land_adjectives}}, .nouns = places});
  return lands[words.adjectives[0] / 3];
}

void describe(Writer& writer, const Creature& creature) {
  const Slots& slots = common_slots();
  if (creature.coat != nullptr) {
    say(writer, creature.coat->detail, slots);
    say(writer, ". ", slots);
  }
  if (creature.colour != nullptr) {
    say(writer, "(In the sun|In the moonlight|From far away) it looked like ", slots);
    say(writer, creature.colour->likeness, slots);
    say(writer, ". ", slots);
  }
  if (creature.coat == nullptr && creature.colour == nullptr) {
    say(writer, "(Nobody knew where it came from|It had no name|It was far from home). ", slots);
  }
}

}  // namespace

void tell_creature(Writer& writer) {
  Creature hero, stranger;
  const Land* land = nullptr;
  Goods first, second;
  Slots slots = common_slots();
  const auto set_text = [&](std::string_view name, auto text) {
    slots.set(name, [&slots, text](Writer& w) { say(w, text(), slots); });
  };
  slots.set("new_hero", [&](Writer& w) { hero = write_creature(w, {}); });
  slots.set("hero_details", [&](Writer& w) { describe(w, hero); });
  set_text("hero", [&] { return hero.noun; });
  set_text("hero_moves", [&] { return hero.temper->moves; });
  set_text("hero_reacts", [&] { return hero.temper->reacts; });
  set_text("hero_speech", [&] { return hero.temper->speech; });
  set_text("hero_says", [&] { return hero.temper->says; });
  slots.set("new_place", [&](Writer& w) { land = &write_place(w); });
  set_text("clause", [&] { return land->clause; });
  set_text("night", [&] { return land->night; });
  slots.set("new_stranger", [&](Writer& w) { stranger = write_creature(w, {hero.noun}); });
  set_text("stranger", [&] { return stranger.noun; });
  set_text("stranger_reacts", [&] { return stranger.temper->reacts; });
  set_text("stranger_speech", [&] { return stranger.temper->speech; });
  set_text("stranger_says", [&] { return stranger.temper->says; });
  slots.set("new_first", [&](Writer& w) { first = write_goods(w); });
  slots.set("new_second", [&](Writer& w) { second = write_goods(w, {first.noun}); });
  set_text("first", [&] { return first.noun; });
  set_text("second", [&] { return second.noun; });
  set_text("first_fate", [&] { return first.condition->fate; });
  set_text("second_fate", [&] { return second.condition->fate; });

  say(writer,
      "(One morning|Late one evening|Long ago|Once upon a time|Before dawn|Early one {weekday}), "
      "{new_hero} {hero_moves} {new_place}, {clause}. {hero_details}",
      slots);
  say(writer,
      "(Beside|Near|Behind|Under) (a stone bridge|a hollow tree|a ruined house|a broken gate|a "
      "pile of wood|an empty cart) it met {new_stranger}, which {stranger_reacts}. "
      "\"{stranger_speech}\" {stranger_says} the {stranger}. The {hero} {hero_reacts}. "
      "\"{hero_speech}\" it {hero_says}.\n",
      slots);
  say(writer,
      "(In the grass|Behind a rock|Among the leaves|Under a stone) they (found|dug up|came upon) "
      "{new_first} and {new_second}. (The {hero} took the {first}{first_fate}, and the {stranger} "
      "took the {second}{second_fate}|The {stranger} took the {first}{first_fate}, and the {hero} "
      "took the {second}{second_fate}). That night {night}.",
      slots);
}

}  // namespace heed::microworld
