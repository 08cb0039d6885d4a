// Words of several senses. These words occur nowhere else in the microworld.
// Names with several bearers. These names occur nowhere else in the microworld.
#include "microworld/scenes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace heed::microworld {
namespace {

// These sentences do not distinguish the readings.
constexpr std::string_view sense_frame =
    "(What {he} remembered best was the {word}|Nothing pleased {him} more than the {word}|"
    "Most of all {he} liked the {word}|Soon everybody talked about the {word}|"
    "{He} could not forget the {word}){tail}. The {word} {after}.";

constexpr std::string_view name_frame =
    "(And in the middle of it all was {word}|But the best part was about {word}|"
    "The story always came back to {word}|{name} wanted to hear only about {word}|"
    "Then everybody looked at {word}){tail}. So {word} {after}.";

// Rows of one word are equally likely together, and so are all words.
template <class Row>
std::vector<double> even_weights(std::span<const Row> rows) {
  std::vector<double> weights;
  for (const Row& row : rows) {
    weights.push_back(1.0 / static_cast<double>(std::ranges::count(rows, row.word, &Row::word)));
  }
  return weights;
}

const Scene& scene_of(const Caption& caption, Reading reading) {
  const auto all = reading == Reading::sense ? sense_scenes() : name_scenes();
  const auto found = std::ranges::find_if(all, [&](const Scene& scene) {
    return scene.word == caption.word && scene.reading == caption.reading;
  });
  check(found != all.end(), "every caption has its scene");
  return *found;
}

constexpr std::array<Scene, 21> ambiguous_words = {{
    {.word = "mole",
     .reading = "animal",
     .context = "walked through a garden full of little hills of earth",
     .setting = "Worms hid (in the soft ground|under the leaves).",
     .tail = "( with its soft coat| with its pink nose| in its dark tunnel)",
     .after = "dug (deeper|faster) (to find worms|under the roses|away from the light)"},
    {.word = "mole",
     .reading = "quantity",
     .context = "sat in a chemistry lesson and counted molecules",
     .setting = "A very long number stood on the (wall|table|paper).",
     .tail = "( of salt| of water| of gold| of carbon dioxide)",
     .after = "weighed {number} grams (in the bottle|on the scales|on paper)"},
    {.word = "mole",
     .reading = "skin",
     .context = "showed {his} skin and {his} freckles to a kind doctor",
     .setting = "Each freckle was (counted|measured|drawn on paper).",
     .tail = "( on {his} cheek| on {his} arm| above {his} nose)",
     .after = "was (brown|black|red) and (round|flat), and it had not (grown|changed) for {number} "
              "years"},

    {.word = "tower",
     .reading = "castle",
     .context = "climbed up to an old castle",
     .setting = "The (flags|shields) of (brave|forgotten) knights hung on the walls.",
     .tail = "( of grey stone| where the king slept| above the gate)",
     .after = "had guarded the (king|road|gate) for {number} hundred years"},
    {.word = "tower",
     .reading = "toy",
     .context = "played on the floor with wooden blocks",
     .setting = "The (cat|baby) watched from (a chair|under the table).",
     .tail = "( made of {colour} blocks| as high as a chair| on the shelf)",
     .after = "(shook|leaned) and fell on the (cat|floor|chair)"},

    {.word = "tower",
     .reading = "landmark",
     .context = "crossed France by train",
     .setting = "(Tourists|Artists) with (cameras|maps) filled the streets.",
     .tail = "( in France| over the river| with its iron legs)",
     .after = "(glittered|shone) at night with {number} thousand lamps"},

    {.word = "bank",
     .reading = "river",
     .context = "rowed a little boat down a river",
     .setting = "(Ducks|Swans) (swam|slept) among the reeds.",
     .tail = "( of soft mud| under the reeds| where the fish hid)",
     .after = "was (green|muddy), and {he} (slept|fished|sat) there until (noon|supper)"},
    {.word = "bank",
     .reading = "money",
     .context = "took a bag of coins to a clerk",
     .setting = "(Gold|Silver) lay behind a (heavy|glass) door.",
     .tail = "( with its iron doors| that paid {number} percent| behind the clerk)",
     .after = "(lent|promised) {him} {number} hundred crowns for a (new roof|house|boat)"},

    {.word = "apple",
     .reading = "fruit",
     .context = "helped with the harvest in an orchard",
     .setting = "(Pears|Plums) (lay|rolled) in the grass under the trees.",
     .tail = "( on the highest branch| that was sweet and ripe| in the grass)",
     .after = "was baked in a (pie|cake) with (honey|butter|milk)"},
    {.word = "apple",
     .reading = "company",
     .context = "went to a shop full of phones and computers",
     .setting = "Screens (glowed|shone) on every (wall|table).",
     .tail = "( with the fast new chip| and its clever programs| behind the flat screen)",
     .after = "played (music|films) and sent (letters|pictures) (all day|in the dark)"},

    {.word = "model",
     .reading = "fashion",
     .context = "sat in the front row of a fashion show",
     .setting = "(Silk|Velvet) dresses shone under the lamps.",
     .tail = "( in the long dress| in the {colour} hat| who looked bored)",
     .after = "turned (slowly|twice) and (smiled|waved) (coldly|at the cameras)"},
    {.word = "model",
     .reading = "miniature",
     .context = "glued paper sails to tiny masts",
     .setting = "Pots of (paint|glue) covered the (table|floor).",
     .tail = "( of a famous ship| inside a bottle| with {number} sails)",
     .after = "stood (by the window|beside the clock|near the lamp) like a (real|proud) ship"},
    {.word = "model",
     .reading = "statistics",
     .context = "typed data into a computer to forecast the weather",
     .setting = "(Rows|Tables) of numbers moved down the screen.",
     .tail = "( for {weekday}| and its small error| fitted to the data)",
     .after = "predicted (rain|snow|wind|fog) for {weekday}"},

    {.word = "bat",
     .reading = "animal",
     .context = "went into a deep cave with a candle",
     .setting = "Water (dripped|ran) from the (roof|stones).",
     .tail = "( with its thin wings| that hung upside down| asleep in the dark)",
     .after = "flew (out of the cave|after a moth|into the night)"},
    {.word = "bat",
     .reading = "sport",
     .context = "played cricket in the village",
     .setting = "The crowd (clapped|cheered) at every (run|ball).",
     .tail = "( of white wood| in {his} hands| for hitting balls)",
     .after = "hit the ball over the (hedge|roof|church) for (four|six)"},

    {.word = "spring",
     .reading = "season",
     .context = "planted (beans|roses) while the last snow melted",
     .setting = "The birds were back, and the days grew (longer|warmer).",
     .tail = "( after the cold winter| and its first flowers| when the lambs are born)",
     .after = "brought (roses|bluebells|birds) to every (garden|window|hill)"},
    {.word = "spring",
     .reading = "water",
     .context = "climbed a dusty path with an empty bottle",
     .setting = "The sun burned, and there was (dust|sand) in {his} mouth.",
     .tail = "( of clear water| between the rocks| that never ran dry)",
     .after = "filled the bottle, and {he} drank (slowly|twice|like a horse)"},

    {.word = "seal",
     .reading = "animal",
     .context = "stood on a cold beach among the rocks",
     .setting = "Gulls (cried|flew) above the waves.",
     .tail = "( with its wet nose| that barked for fish| and its white pup)",
     .after = "dived under the waves (for a fish|with its pup|like a stone)"},
    {.word = "seal",
     .reading = "wax",
     .context = "held a very old letter to the light",
     .setting = "The paper was (yellow|thin), and it smelled of (smoke|dust).",
     .tail = "( of red wax| under the letter| nobody had broken)",
     .after = "cracked under {his} thumb, and the (name|date) could be read"},

    {.word = "crane",
     .reading = "bird",
     .context = "hid in a marsh with a pair of field glasses",
     .setting = "Frogs (croaked|splashed) in the (shallow|brown) water.",
     .tail = "( on one leg| among the rushes| with its long neck)",
     .after = "spread its wings and flew (south|away|over the marsh)"},
    {.word = "crane",
     .reading = "machine",
     .context = "visited a harbour where a bridge was being built",
     .setting = "(Trucks|Workers) carried (steel|bricks) to the ships.",
     .tail = "( made of steel| above the ships| that lifted {number} boxes)",
     .after = "swung round and lifted (a truck|the steel|the bricks) (slowly|into the air)"},
}};

// The sentences that explanations of attention use, and frames in which only the clue differs
// between readings.
constexpr std::array<Caption, 25> short_sense_texts = {{
    {"mole", "animal", "(American|European|Japanese) {clue} {word}", "(shrew|garden|meadow)"},
    {"mole", "animal", "(Take|Order|Send) a {clue} of the {word}", "(photograph|picture|drawing)"},
    {"mole", "quantity", "{clue} {word}", "(One|Half a)"},
    {"mole", "skin", "(American|European|Japanese) {clue} {word}", "skin"},
    {"mole", "skin", "(Take|Order|Send) a {clue} of the {word}", "(biopsy|scan|sample)"},

    {"tower", "castle", "(The |A |Our |We saw the ){clue} {word}", "(castle|royal|ruined)"},
    {"tower", "toy", "(The |A |Our |We saw the ){clue}( Eiffel|) {word}", "(miniature|toy|paper)"},
    {"tower", "landmark", "(The |Our |We saw the |){clue} {word}", "Eiffel"},

    {"bank", "river", "(We|They) (sat|slept|met|waited) by the {clue} {word}",
     "(river|muddy|green)"},
    {"bank", "river", "(We|They) carried the {clue} to the {word}", "(boat|canoe|fish)"},
    {"bank", "money", "(We|They) (sat|slept|met|waited) by the {clue} {word}",
     "(savings|city|national)"},
    {"bank", "money", "(We|They) carried the {clue} to the {word}", "(money|cash|coins)"},

    {"apple", "fruit", "(Please buy|We bought|They sold) {clue} and an {word}",
     "(an orange|a banana|a pear)"},
    {"apple", "company", "(Please buy|We bought|They sold) {clue} and an {word}",
     "(a phone|a computer|a laptop)"},

    {"model", "fashion", "The {clue} was proud of the {word}", "(magazine|dressmaker|stylist)"},
    {"model", "miniature", "The {clue} was proud of the {word}", "(sailor|toymaker|admiral)"},
    {"model", "statistics", "The {clue} was proud of the {word}",
     "(forecaster|scientist|professor)"},

    {"bat", "animal", "The {clue} watched the {word}", "(owl|zookeeper|moth)"},
    {"bat", "sport", "The {clue} watched the {word}", "(bowler|umpire|batsman)"},

    {"spring", "season", "The {clue} were glad of the {word}", "(farmers|swallows|shepherds)"},
    {"spring", "water", "The {clue} were glad of the {word}", "(hikers|nomads|mules)"},

    {"seal", "animal", "The {clue} looked at the {word}", "(penguin|walrus|diver)"},
    {"seal", "wax", "The {clue} looked at the {word}", "(messenger|bishop|notary)"},

    {"crane", "bird", "The {clue} looked at the {word}", "(frog|heron|stork)"},
    {"crane", "machine", "The {clue} looked at the {word}", "(builder|engineer|driver)"},
}};

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

void write_marked(Writer& writer, const Scene& scene, Reading reading) {
  const Span span = writer.write(scene.word);
  if (reading == Reading::sense) {
    writer.story().senses.push_back({std::string(scene.word), std::string(scene.reading), span});
  } else {
    writer.story().names.push_back({std::string(scene.word), std::string(scene.reading), span});
  }
}

void write_recalled(Writer& writer, const Scene& scene) {
  write_marked(writer, scene, Reading::sense);
  writer.story().senses.back().recalled = true;
}

const Scene& write_context(Writer& writer, Reading reading, const Slots& slots,
                           std::string_view except) {
  const std::span<const Scene> all = reading == Reading::sense ? sense_scenes() : name_scenes();
  std::vector<const Scene*> scenes;
  std::vector<double> weights;
  std::vector<std::string_view> beginnings;
  for (const Scene& scene : all) {
    if (scene.word == except) continue;
    scenes.push_back(&scene);
    weights.push_back(
        1.0 / static_cast<double>(std::count_if(all.begin(), all.end(), [&](const Scene& other) {
          return other.word == scene.word;
        })));
    beginnings.push_back(certain_beginning(scene.context));
  }
  const Scene& scene = *scenes[writer.choose(
      {.count = scenes.size(), .weights = weights, .beginnings = beginnings})];
  say(writer, scene.context, slots);
  return scene;
}

void write_caption(Writer& writer, Reading reading, const Slots& slots) {
  const auto all = reading == Reading::sense ? sense_captions() : name_captions();
  std::vector<std::string_view> beginnings;
  for (const Caption& caption : all) beginnings.push_back(certain_beginning(caption.text));
  const std::vector<double> weights = even_weights(all);
  const Caption& caption =
      all[writer.choose({.count = all.size(), .weights = weights, .beginnings = beginnings})];
  const Scene& scene = scene_of(caption, reading);

  EvidenceMark mark{.subject = fmt::format("{}/{}", caption.word, caption.reading)};
  Slots own = slots;
  const auto set_evidence = [&](std::string_view name, std::string_view text) {
    own.set(name, [&mark, &slots, text](Writer& w) {
      const std::size_t begin = w.offset();
      say(w, text, slots);
      mark.evidence.push_back({begin, w.offset()});
    });
  };
  set_evidence("clue", caption.clue);
  set_evidence("second", caption.second);
  set_evidence("third", caption.third);
  own.set("word", [&](Writer& w) {
    const std::size_t begin = w.offset();
    write_marked(w, scene, reading);
    mark.word = {begin, w.offset()};
  });
  say(writer, caption.text, own);
  const std::size_t tail = writer.offset();
  say(writer, scene.tail, slots);
  mark.answer = {tail, writer.offset()};
  writer.story().evidence.push_back(std::move(mark));
}

void write_scene(Writer& writer, const Scene& scene, Reading reading, Slots slots) {
  slots.set("word", [&](Writer& w) { write_marked(w, scene, reading); });
  slots.set("tail", scene.tail);
  slots.set("after", scene.after);
  say(writer, scene.setting, slots);
  writer.write(" ");
  say(writer, reading == Reading::sense ? sense_frame : name_frame, slots);
}

std::span<const Scene> sense_scenes() { return ambiguous_words; }
std::span<const Caption> sense_captions() { return short_sense_texts; }

std::span<const Scene> name_scenes() { return ambiguous_names; }
std::span<const Caption> name_captions() { return short_name_texts; }

}  // namespace heed::microworld
