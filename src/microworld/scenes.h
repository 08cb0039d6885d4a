// Scenes that determine the meaning of a word before it occurs. The context and setting of a scene
// fit one reading only; the word occurs in a sentence shared by all readings, and the text after it
// again fits that reading only.
#pragma once

#include <span>
#include <string_view>

#include "microworld/writer.h"

namespace heed::microworld {

// All texts are templates; those of senses may use {he} {He} {him} {his}.
struct Scene {
  std::string_view word;
  std::string_view reading;  // the sense, or whom the name means
  std::string_view context;  // of a sense: what somebody did; of a name: what a tale is about
  std::string_view setting;  // a sentence
  std::string_view tail;     // directly after the word, with its own space; no two readings of a
                             // word have tails that begin with the same word
  std::string_view after;    // the following sentence about the word
};

// Rows of the same word are neighbours.
std::span<const Scene> sense_scenes();
std::span<const Scene> name_scenes();

// A short text before the word, from which the reading follows as well. It stands for itself, as a
// caption does, and the scene's tail completes it.
struct Caption {
  std::string_view word;
  std::string_view reading;
  std::string_view text;         // a template with {clue} and, at its end, {word}
  std::string_view clue;         // a template: what decides the reading
  std::string_view second = {};  // more such words, as {second} and {third}
  std::string_view third = {};
};

std::span<const Caption> sense_captions();
std::span<const Caption> name_captions();

enum class Reading { sense, name };

// Writes a word of several senses, or a name, and records which it is.
void write_marked(Writer& writer, const Scene& scene, Reading reading);

// Writes a word of several senses once more, after its scene.
void write_recalled(Writer& writer, const Scene& scene);

// Chooses a scene and writes its context. Words are equally likely, and so are the readings of one
// word; `except` is a word that must not come again.
const Scene& write_context(Writer& writer, Reading reading, const Slots& slots,
                           std::string_view except = {});

// Chooses a caption, all words and all readings of a word equally likely, and writes it with its
// tail.
void write_caption(Writer& writer, Reading reading, const Slots& slots);

// Writes the rest of the scene: setting, the shared sentence, and what came after.
void write_scene(Writer& writer, const Scene& scene, Reading reading, Slots slots);

}  // namespace heed::microworld
