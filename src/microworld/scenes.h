// Scenes that determine the meaning of a word before it occurs. The context and setting of a scene
// fit one reading only; the word occurs in a sentence shared by all readings, and the text after it
// again fits that reading only.
#pragma once

#include <span>
#include <string_view>

#include "microworld/phrase.h"

namespace heed::microworld {

// All texts are templates; those of senses may use {he} {He} {him} {his}.
struct Scene {
  std::string_view word;
  std::string_view reading;  // the sense, or whom the name means
  std::string_view context;  // of a sense: what somebody did; of a name: what a tale is about
  std::string_view setting;  // a sentence
  std::string_view tail;     // directly after the word, with its own space or comma
  std::string_view after;    // the following sentence about the word
};

// Rows of the same word are neighbours.
std::span<const Scene> sense_scenes();
std::span<const Scene> name_scenes();

enum class Reading { sense, name };

// Writes a word of several senses, or a name, and records which it is.
void write_marked(Writer& writer, const Scene& scene, Reading reading);

// Writes a word of several senses once more, after its scene.
void write_recalled(Writer& writer, const Scene& scene);

// Chooses a scene and writes its context. Words are equally likely, and so are the readings of one
// word; `except` is a word that must not come again.
const Scene& write_context(Writer& writer, Reading reading, const Slots& slots,
                           std::string_view except = {});

// Writes the rest of the scene: setting, the shared sentence, and what came after.
void write_scene(Writer& writer, const Scene& scene, Reading reading, Slots slots);

}  // namespace heed::microworld
