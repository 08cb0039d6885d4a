// Things that are found, bought, given and lost: an adjective says what condition a thing is in,
// and the condition decides what people say of it and do with it.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "microworld/phrase.h"

namespace heed::microworld {

struct Condition {
  std::array<std::string_view, 3> adjectives;
  std::string_view trail;   // directly after the noun: "a cracked jug that nobody wanted"
  std::string_view price;   // what the seller asks
  std::string_view fate;    // what the new owner does: "took the jug, hoping to mend it"
  std::string_view thanks;  // what one writes to the giver
};

struct Goods {
  const Condition* condition = nullptr;
  std::string_view noun;
};

// Writes "a" and a thing with one or two adjectives, the second of which is a colour.
Goods write_goods(Writer& writer, std::vector<std::string_view> except = {});

}  // namespace heed::microworld
