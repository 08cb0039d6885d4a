#include "microworld/creatures.h"

#include <utility>

#include "microworld/lexicon.h"

namespace heed::microworld {
namespace {

constexpr std::array<Temper, 5> tempers = {{
    {.adjectives = {"fierce", "savage"},
     .tail = "cruel as (winter|a storm)",
     .moves = "(prowled through|stalked across|stormed into)",
     .reacts = "(growled|snarled|showed its teeth)",
     .speech = "(Out of my way|This path is mine|I could eat you whole)!",
     .says = "(roared|hissed)",
     .manner = "fiercely"},
    {.adjectives = {"timid", "shy"},
     .tail = "quiet as (a mouse|a shadow)",
     .moves = "(crept through|tiptoed across|slipped into)",
     .reacts = "(trembled|shivered|hid its face)",
     .speech = "(Please do not hurt me,|I heard a noise,|May I hide with you?)",
     .says = "(whispered|squeaked)",
     .manner = "timidly"},
    {.adjectives = {"merry", "playful"},
     .tail = "happy as (a child|a king)",
     .moves = "(danced through|skipped across|bounced into)",
     .reacts = "(laughed|giggled|clapped its paws)",
     .speech = "(Come and dance with me,|What a lovely day,|I know a song,)",
     .says = "(sang|cried)",
     .manner = "merrily"},
    {.adjectives = {"weary", "sleepy"},
     .tail = "slow as (a snail|an old cart)",
     .moves = "(plodded through|limped across|shuffled into)",
     .reacts = "(yawned|sighed|rubbed its eyes)",
     .speech = "(I have walked since dawn,|My feet are like lead,|Is there a bed near here?)",
     .says = "(mumbled|groaned)",
     .manner = "soundly"},
    {.adjectives = {"proud", "noble"},
     .tail = "grand as (a queen|a palace)",
     .moves = "(strode through|marched across|paraded into)",
     .reacts = "(raised its nose|bowed stiffly|nodded coldly)",
     .speech = "(My mother was a queen,|I do not talk to strangers,|You may bow to me,)",
     .says = "(declared|announced)",
     .manner = "proudly"},
}};

constexpr Temper no_temper = {
    .adjectives = {},
    .tail = {},
    .moves = "(roamed|crossed|explored)",
    .reacts = "(stopped|waited|looked up)",
    .speech = "(Good day to you,|Where does this road go?|Have you come far?)",
    .says = "(said|asked)",
    .manner = "well"};

constexpr std::array<Coat, 3> coats = {{
    {{"fluffy", "woolly"}, "soft as (a pillow|moss|a cloud)"},
    {{"shaggy", "bristly"}, "rough as (a brush|a hedge|thorns)"},
    {{"sleek", "silky"}, "smooth as (glass|water|ice)"},
}};

constexpr std::array<CreatureColour, 8> creature_colours = {{
    {{"red"}, "bright as (a rose|fire)"},
    {{"blue"}, "deep as the (sky|sea)"},
    {{"green"}, "fresh as (grass|a leaf)"},
    {{"golden"}, "yellow as (honey|a new coin)"},
    {{"white"}, "pale as (milk|snow)"},
    {{"black"}, "dark as (coal|ink)"},
    {{"grey"}, "dull as (ash|stone)"},
    {{"brown"}, "warm as (toast|earth)"},
}};

constexpr std::array<Land, 4> lands = {{
    {{"verdant", "leafy"},
     "full of (ferns|bluebells|roses)",
     "(the leaves whispered above them|an owl sang to them|they slept on soft moss)"},
    {{"snowy", "icy"},
     "white with (ice|snow)",
     "(the ice rang like bells|they slept under the snow|the snow shone like silver)"},
    {{"dusty", "dry"},
     "without (rain|water|birds)",
     "(the ground was still warm|they dreamed of rain|dust covered the moon)"},
    {{"misty", "foggy"},
     "where shapes moved like (ghosts|smoke|ships)",
     "(they could not see the moon|the fog covered them|they dreamed of ghosts)"},
}};

constexpr std::array<std::string_view, 4> places = {"forest", "valley", "meadow", "wood"};

constexpr std::array<std::string_view, 12> animals = {"creature", "fox",   "wolf",   "bear",
                                                      "badger",   "hare",  "lynx",   "goat",
                                                      "pony",     "otter", "dragon", "beaver"};

constexpr auto temper_adjectives = all_adjectives(tempers);
constexpr auto coat_adjectives = all_adjectives(coats);
constexpr auto colour_adjectives = all_adjectives(creature_colours);
constexpr auto land_adjectives = all_adjectives(lands);

}  // namespace

Creature write_creature(Writer& writer, const CreatureOptions& options) {
  const std::size_t which = writer.choose(7) + 1;
  NounPhrase phrase{.article = options.article, .nouns = animals, .except = options.except};
  if (which & 1) phrase.adjectives.push_back({temper_adjectives});
  if (which & 2) phrase.adjectives.push_back({coat_adjectives});
  if (which & 4) phrase.adjectives.push_back({colour_adjectives, Join::space});
  const ChosenWords words = write_noun_phrase(writer, phrase);

  Creature creature{.temper = &no_temper, .noun = words.noun};
  creature.noun_span = {writer.offset() - words.noun.size(), writer.offset()};
  const std::size_t marks = writer.story().adjectives.size();
  if ((which & 1) && marks > 0) {
    creature.temper_span = writer.story().adjectives.back().adjectives.front();
  }
  std::vector<std::string_view> tails;
  auto next = words.adjectives.begin();
  if (which & 1) {
    creature.temper = &row_of(tempers, *next++);
    tails.push_back(creature.temper->tail);
  }
  if (which & 2) tails.push_back(row_of(coats, *next++).tail);
  if (which & 4) tails.push_back(row_of(creature_colours, *next++).tail);
  if (options.tails) write_tails(writer, tails);
  return creature;
}

void write_manner(Writer& writer, const Creature& creature) {
  writer.write("The ");
  const Span noun = writer.write(creature.noun);
  writer.write(" ");
  const Span slept = writer.write("slept");
  writer.write(" ");
  writer.write(creature.temper->manner);
  if (creature.temper == &no_temper) return;
  writer.story().evidence.push_back({.subject = "manner",
                                     .word = slept,
                                     .evidence = {creature.temper_span, noun},
                                     .answer = {slept.end, writer.offset()}});
}

Place write_place(Writer& writer, bool tail) {
  const ChosenWords words = write_noun_phrase(
      writer, {.article = Article::definite, .adjectives = {{land_adjectives}}, .nouns = places});
  const Land& land = row_of(lands, words.adjectives[0]);
  if (tail) write_tails(writer, {land.tail});
  return {&land, words.noun};
}

}  // namespace heed::microworld
