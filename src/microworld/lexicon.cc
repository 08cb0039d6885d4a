#include "microworld/lexicon.h"

namespace heed::microworld {
namespace {

constexpr std::array<std::string_view, 12> role_words = {
    "cook",    "gardener", "butler", "doctor", "captain", "poet",
    "painter", "lawyer",   "singer", "nurse",  "teacher", "tailor"};

constexpr std::array<std::string_view, 10> room_words = {"library", "study",   "cellar", "attic",
                                                         "kitchen", "gallery", "chapel", "pantry",
                                                         "parlour", "garden"};

constexpr std::array<std::string_view, 16> thing_words = {
    "jug", "bowl", "lamp",    "clock", "mirror", "box",  "bell", "key",
    "cup", "pipe", "whistle", "comb",  "kettle", "ring", "drum", "spoon"};

constexpr std::array<std::string_view, 8> colour_words = {"red",   "blue",  "green", "yellow",
                                                          "white", "black", "grey",  "brown"};

}  // namespace

std::span<const std::string_view> roles() { return role_words; }
std::span<const std::string_view> rooms() { return room_words; }
std::span<const std::string_view> things() { return thing_words; }

const Slots& common_slots() {
  static const Slots slots = {
      {"role", [](Writer& w) { w.pick(role_words); }},
      {"room", [](Writer& w) { w.pick(room_words); }},
      {"thing", [](Writer& w) { w.pick(thing_words); }},
      {"colour", [](Writer& w) { w.pick(colour_words); }},
      {"number_capital", "(Two|Three|Four|Five|Six|Seven|Eight|Nine)"},
      {"number", "(two|three|four|five|six|seven|eight|nine)"},
      {"weekday", "(Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)"},
  };
  return slots;
}

std::string_view WithoutRepeats::write(Writer& writer) {
  const std::size_t option = writer.pick(words_);
  const std::string_view word = words_[option];
  words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(option));
  return word;
}

}  // namespace heed::microworld
