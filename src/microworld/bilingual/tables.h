// What the tables of words have in common.
#pragma once

#include <span>

#include "microworld/bilingual/words.h"

namespace heed::microworld::bilingual::tables {

using namespace classes;
using enum Frame;
using G = GermanVerb;

inline constexpr Gender m = Gender::masculine, f = Gender::feminine, n = Gender::neuter;
inline constexpr Case accusative = Case::accusative, dative = Case::dative;

// The parts of all_nouns() and all_verbs().
std::span<const Noun> living_nouns();
std::span<const Noun> thing_nouns();
std::span<const Noun> place_nouns();
std::span<const Verb> verbs_without_object();
std::span<const Verb> verbs_with_object();

}  // namespace heed::microworld::bilingual::tables
