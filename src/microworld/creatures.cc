// Two creatures meet. The adjectives before a creature decide how it looks, walks and speaks; those
// before the place decide what is to be seen there.
#include "microworld/creatures.h"

#include <utility>

#include "microworld/goods.h"
#include "microworld/kinds.h"
#include "microworld/phrase.h"

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

void tell_creature(Writer& writer) {
  Creature hero, stranger;
  Place place;
  Goods first, second;
  Slots slots = common_slots();
  const auto set_text = [&](std::string_view name, auto text) {
    slots.set(name, [&slots, text](Writer& w) { say(w, text(), slots); });
  };
  slots.set("new_hero", [&](Writer& w) { hero = write_creature(w); });
  set_text("hero", [&] { return hero.noun; });
  set_text("hero_moves", [&] { return hero.temper->moves; });
  set_text("hero_reacts", [&] { return hero.temper->reacts; });
  set_text("hero_speech", [&] { return hero.temper->speech; });
  set_text("hero_says", [&] { return hero.temper->says; });
  slots.set("new_place", [&](Writer& w) { place = write_place(w); });
  set_text("place", [&] { return place.noun; });
  set_text("night", [&] { return place.land->night; });
  slots.set("new_stranger",
            [&](Writer& w) { stranger = write_creature(w, {.except = {hero.noun}}); });
  set_text("stranger", [&] { return stranger.noun; });
  set_text("stranger_reacts", [&] { return stranger.temper->reacts; });
  set_text("stranger_speech", [&] { return stranger.temper->speech; });
  set_text("stranger_says", [&] { return stranger.temper->says; });
  slots.set("new_first", [&](Writer& w) { first = write_goods(w); });
  slots.set("new_second", [&](Writer& w) { second = write_goods(w, {.except = {first.noun}}); });
  set_text("first", [&] { return first.noun; });
  set_text("second", [&] { return second.noun; });
  slots.set("first_fate", [&](Writer& w) { write_fate(w, first, slots); });
  slots.set("second_fate", [&](Writer& w) { write_fate(w, second, slots); });

  slots.set("slept", [&](Writer& w) { write_manner(w, w.choose(2) == 0 ? hero : stranger); });

  say(writer,
      "(One morning|Late one evening|Long ago|Once upon a time|Before dawn|Early one {weekday}), "
      "{new_hero} {hero_moves} {new_place}. ",
      slots);
  say(writer,
      "(Beside|Near|Behind|Under) (a stone bridge|a hollow tree|a ruined house|a broken gate|a "
      "pile of wood|an empty cart) it met {new_stranger}, which {stranger_reacts}. "
      "\"{stranger_speech}\" {stranger_says} the {stranger}. The {hero} {hero_reacts}. "
      "\"{hero_speech}\" it {hero_says}.\n",
      slots);
  say(writer,
      "(In the grass|Behind a rock|Among the leaves|Under a stone) they (found|dug up|came upon) "
      "{new_first} beside {new_second}. (The {hero} took the {first}{first_fate}, and the "
      "{stranger} "
      "took the {second}{second_fate}|The {stranger} took the {first}{first_fate}, and the {hero} "
      "took the {second}{second_fate}). That night in the {place} {night}. {slept}.",
      slots);
}

}  // namespace heed::microworld
