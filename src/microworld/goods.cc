#include "microworld/goods.h"

#include <utility>

#include "microworld/lexicon.h"

namespace heed::microworld {
namespace {

constexpr std::array<Condition, 6> conditions = {{
    {.adjectives = {"broken", "cracked", "bent"},
     .trail = "that nobody (wanted|would buy|had mended)",
     .price = "(One penny|Almost nothing|Half a penny)",
     .fate = ", hoping to mend it (before winter|with glue|by {weekday})",
     .thanks = "it will be as good as new when the {role} has mended it"},
    {.adjectives = {"costly", "precious", "jewelled"},
     .trail = "guarded by {number} (dogs|soldiers)",
     .price = "{number_capital} hundred crowns",
     .fate = " and hid it from (thieves|the {role})",
     .thanks = "it is far too fine for (me|our house|a {role})"},
    {.adjectives = {"plain", "simple", "humble"},
     .trail = "such as every (kitchen|house|{role}) has",
     .price = "{number_capital} pennies",
     .fate = " and used it every (day|morning|{weekday})",
     .thanks = "I use it every (day|morning|{weekday})"},
    {.adjectives = {"huge", "enormous", "heavy"},
     .trail = "that {number} men could not lift",
     .price = "{number_capital} crowns and a cart",
     .fate = ", (dragging|rolling|pushing) it (slowly|up the hill|down the road)",
     .thanks = "{number} men carried it through the (door|garden|kitchen)"},
    {.adjectives = {"tiny", "little", "miniature"},
     .trail = "no bigger than a (thumb|nut|coin)",
     .price = "(Half a crown|One crown|A kiss)",
     .fate = " and hid it (under one arm|behind one ear|under a leaf)",
     .thanks = "it fits (in my pocket|on my thumb|inside a nut)"},
    {.adjectives = {"new", "polished", "shiny"},
     .trail = "without a single (scratch|mark)",
     .price = "{number_capital} crowns",
     .fate = " and smiled at the (face|moon|light) in its side",
     .thanks = "I can see my (face|nose|teeth) in its side"},
}};

constexpr auto condition_adjectives = all_adjectives(conditions);

}  // namespace

Goods write_goods(Writer& writer, std::vector<std::string_view> except) {
  NounPhrase phrase{
      .adjectives = {{condition_adjectives}}, .nouns = things(), .except = std::move(except)};
  if (writer.choose(2) == 1) phrase.adjectives.push_back({colours(), Join::space});
  const ChosenWords words = write_noun_phrase(writer, phrase);
  return {&conditions[words.adjectives[0] / 3], words.noun};
}

}  // namespace heed::microworld
