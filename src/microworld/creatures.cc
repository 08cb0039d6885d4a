#include "microworld/creatures.h"

#include <utility>

#include "microworld/lexicon.h"

namespace heed::microworld {
namespace {

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

constexpr std::array<Coat, 3> coats = {{
    {{"fluffy", "woolly", "downy"}, "Its coat was as soft as (a pillow|moss|a cloud)"},
    {{"shaggy", "bristly", "spiny"}, "Its coat was as rough as (a brush|a hedge|thorns)"},
    {{"sleek", "glossy", "silky"}, "Its coat was as smooth as (glass|water|ice)"},
}};

constexpr std::array<CreatureColour, 8> creature_colours = {{
    {{"red"}, "(a rose|fire)"},
    {{"blue"}, "(the summer sky|deep water)"},
    {{"green"}, "(new grass|a leaf)"},
    {{"golden"}, "(honey|a new coin)"},
    {{"white"}, "(milk|fresh snow)"},
    {{"black"}, "(coal|ink)"},
    {{"grey"}, "(ash|old stone)"},
    {{"brown"}, "(toast|dry earth)"},
}};

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

}  // namespace

Creature write_creature(Writer& writer, std::vector<std::string_view> except) {
  const std::size_t which = writer.choose(7) + 1;
  NounPhrase phrase{.nouns = animals, .except = std::move(except)};
  if (which & 1) phrase.adjectives.push_back({temper_adjectives});
  if (which & 2) phrase.adjectives.push_back({coat_adjectives});
  if (which & 4) phrase.adjectives.push_back({colour_adjectives, Join::space});
  const ChosenWords words = write_noun_phrase(writer, phrase);

  Creature creature{.temper = &no_temper, .noun = words.noun};
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

}  // namespace heed::microworld
