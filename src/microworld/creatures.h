// Creatures and places whose adjectives decide what they are like, which is said directly after the
// noun, and what they do. The stories that tell of them read the consequences from here.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "microworld/writer.h"

namespace heed::microworld {

struct Temper {
  std::array<std::string_view, 2> adjectives;
  std::string_view tail;    // directly after the noun: "a shy hare quiet as a shadow"
  std::string_view moves;   // before the place
  std::string_view reacts;  // at a meeting
  std::string_view speech;  // in quotation marks
  std::string_view says;
  std::string_view manner;  // how it slept
};

struct Coat {
  std::array<std::string_view, 2> adjectives;
  std::string_view tail;
};

struct CreatureColour {
  std::array<std::string_view, 1> adjectives;
  std::string_view tail;
};

struct Land {
  std::array<std::string_view, 2> adjectives;
  std::string_view tail;
  std::string_view night;  // what happened there that night
};

struct Creature {
  const Temper* temper = nullptr;  // a neutral one where no adjective says otherwise
  std::string_view noun;
  Span noun_span, temper_span;  // the latter is empty where no adjective says its temper
};

struct Place {
  const Land* land = nullptr;
  std::string_view noun;
};

struct CreatureOptions {
  std::vector<std::string_view> except = {};  // nouns that must not come again
  Article article = Article::indefinite;
  bool tails = true;
};

// Writes "a" and a creature with one to three adjectives, which are temper, coat and colour, any of
// them absent but not all, and with their tails.
Creature write_creature(Writer& writer, const CreatureOptions& options = {});

// Writes "The NOUN slept" and the manner, which follows from the temper in two steps: from the noun
// to the creature that was met before, and from there to its adjective. Where there is one, it has
// an EvidenceMark, "manner".
void write_manner(Writer& writer, const Creature& creature);

// Writes "the" and a place with an adjective and its tail.
struct PlaceOptions {
  bool tail = true;
};
Place write_place(Writer& writer, const PlaceOptions& options = {});

}  // namespace heed::microworld
