// Things, creatures and places whose adjectives decide what is said of them, directly after the
// noun, and what happens to them. The stories read the consequences from here.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "microworld/writer.h"

namespace heed::microworld {

// The condition of a thing that is found, bought, given or lost.
struct Condition {
  std::array<std::string_view, 3> adjectives;
  std::string_view tail;    // directly after the noun: "a cracked jug worth nothing"
  std::string_view price;   // what the seller asks
  std::string_view fate;    // what the new owner does: "took the jug, hoping to mend it"
  std::string_view thanks;  // what one writes to the giver
};

struct Goods {
  const Condition* condition = nullptr;  // that of the first adjective
  std::string_view noun;
  // The adjective and its tail, which alone say what becomes of it; empty where it has two.
  std::vector<Span> evidence{};
};

struct GoodsOptions {
  std::vector<std::string_view> except = {};  // nouns that must not come again
  std::size_t max_adjectives = 2;             // 1 or 2
};

// Writes what its condition says of a thing's fate, and marks the word that depends on it as
// evidence of the subject "fate", where only the thing's own description decides that word: first
// the noun just written has to be looked up, then what was said of it.
void write_fate(Writer& writer, const Goods& goods, const Slots& slots);

// Writes "a" and a thing with its adjectives and their tails.
Goods write_goods(Writer& writer, const GoodsOptions& options = {});

// The temper of a creature, which decides what it does.
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
