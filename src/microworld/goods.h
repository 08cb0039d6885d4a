// Things that are found, bought, given and lost: an adjective says what condition a thing is in,
// and the condition decides what is said of it, directly after the noun, and what is done with it.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "microworld/writer.h"

namespace heed::microworld {

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

}  // namespace heed::microworld
