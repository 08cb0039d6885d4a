// Creatures and places whose adjectives decide what they do and how they look. The tales that tell
// of them read the consequences from here.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "microworld/phrase.h"

namespace heed::microworld {

struct Temper {
  std::array<std::string_view, 3> adjectives;
  std::string_view moves;   // before the place
  std::string_view reacts;  // at a meeting
  std::string_view speech;  // in quotation marks
  std::string_view says;
};

struct Coat {
  std::array<std::string_view, 3> adjectives;
  std::string_view detail;
};

struct CreatureColour {
  std::array<std::string_view, 1> adjectives;
  std::string_view likeness;
};

struct Land {
  std::array<std::string_view, 3> adjectives;
  std::string_view clause;  // of the place, by day
  std::string_view night;   // what happened there that night
};

struct Creature {
  const Temper* temper = nullptr;  // a neutral one where no adjective says otherwise
  const Coat* coat = nullptr;
  const CreatureColour* colour = nullptr;
  std::string_view noun;
};

// Writes "a" and a creature with one to three adjectives: temper, coat and colour, any of them
// absent but not all.
Creature write_creature(Writer& writer, std::vector<std::string_view> except = {});

// Writes "the" and a place with an adjective.
const Land& write_place(Writer& writer);

}  // namespace heed::microworld
