// People with the pronouns that agree with them.
#pragma once

#include <string_view>

#include "microworld/phrase.h"

namespace heed::microworld {

struct Person {
  std::string_view name;  // empty for the one who writes "I"
  std::string_view he, He, him, his;
};

// Chooses a person and writes the name.
Person write_person(Writer& writer);

// Slots {name} {he} {He} {him} {his} of a person.
void set_person(Slots& slots, const Person& person);

inline constexpr Person narrator = {"", "I", "I", "me", "my"};

}  // namespace heed::microworld
