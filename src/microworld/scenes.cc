#include "microworld/scenes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "microworld/tables.h"

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

Scene read_scene(const TableRow& row) { return {row[0], row[1], row[2], row[3], row[4], row[5]}; }
Caption read_caption(const TableRow& row) {
  return {row[0], row[1], row[2], row[3], row[4], row[5]};
}

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

std::span<const Scene> sense_scenes() {
  static const std::vector<Scene> all = read_rows("senses", read_scene);
  return all;
}
std::span<const Caption> sense_captions() {
  static const std::vector<Caption> all = read_rows("sense captions", read_caption);
  return all;
}

std::span<const Scene> name_scenes() {
  static const std::vector<Scene> all = read_rows("names", read_scene);
  return all;
}
std::span<const Caption> name_captions() {
  static const std::vector<Caption> all = read_rows("name captions", read_caption);
  return all;
}

}  // namespace heed::microworld
