#include "microworld/scenes.h"

#include <algorithm>
#include <string>
#include <vector>

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

void write_scene(Writer& writer, const Scene& scene, Reading reading, Slots slots) {
  slots.set("word", [&](Writer& w) { write_marked(w, scene, reading); });
  slots.set("tail", scene.tail);
  slots.set("after", scene.after);
  say(writer, scene.setting, slots);
  writer.write(" ");
  say(writer, reading == Reading::sense ? sense_frame : name_frame, slots);
}

}  // namespace heed::microworld
