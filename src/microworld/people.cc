#include "microworld/people.h"

#include <array>

namespace heed::microworld {
namespace {

// The first half are women, the second half men.
constexpr std::array<std::string_view, 16> names = {
    "Anna", "Clara", "Emma", "Lucy", "Nora", "Ruth",  "Alice", "Mary",
    "Tom",  "Peter", "Jack", "Hugo", "Leo",  "Simon", "Felix", "Oliver"};

}  // namespace

Person write_person(Writer& writer) {
  const std::size_t option = writer.pick(names);
  if (option < names.size() / 2) return {names[option], "she", "She", "her", "her"};
  return {names[option], "he", "He", "him", "his"};
}

void set_person(Slots& slots, const Person& person) {
  slots.set("name", person.name);
  slots.set("he", person.he);
  slots.set("He", person.He);
  slots.set("him", person.him);
  slots.set("his", person.his);
}

}  // namespace heed::microworld
