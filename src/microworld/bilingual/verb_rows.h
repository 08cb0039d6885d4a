// Builds the rows of the tables of verbs from their principal parts.
#pragma once

#include <array>
#include <string_view>

#include "microworld/bilingual/tables.h"

namespace heed::microworld::bilingual::tables {

// The words of a text that are separated by spaces; "-" stands for none.
constexpr std::array<std::string_view, 5> parts_of(std::string_view text) {
  std::array<std::string_view, 5> parts{};
  for (std::size_t part = 0; part < parts.size() && !text.empty(); ++part) {
    const std::size_t space = text.find(' ');
    parts[part] = text.substr(0, space);
    if (parts[part] == "-") parts[part] = {};
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
  return parts;
}

// "rufen angerufen - rief an": infinitive, participle, changed stem of the present, irregular
// preterite and separable prefix.
constexpr GermanVerb de(std::string_view forms) {
  const auto parts = parts_of(forms);
  return {.infinitive = parts[0],
          .participle = parts[1],
          .present = parts[2],
          .past = parts[3],
          .prefix = parts[4]};
}

// The perfect takes sein.
constexpr GermanVerb sein(GermanVerb verb) {
  verb.sein = true;
  return verb;
}

constexpr GermanVerb sich(GermanVerb verb) {
  verb.reflexive = true;
  return verb;
}

constexpr GermanVerb dat(GermanVerb verb) {
  verb.object = Case::dative;
  return verb;
}

constexpr GermanVerb by(std::string_view preposition, GermanVerb verb) {
  verb.preposition = preposition;
  return verb;
}

// "wake woke woken waking up": base, past, participle, gerund and a word after it.
constexpr Verb en(Frame frame, std::string_view forms, Classes subject, Classes object,
                  GermanVerb first, GermanVerb second = {}) {
  const auto parts = parts_of(forms);
  return {.frame = frame,
          .english = parts[0],
          .tail = parts[4],
          .past = parts[1],
          .participle = parts[2],
          .gerund = parts[3],
          .german = {first, second},
          .subject = subject,
          .object = object};
}

constexpr Verb stative(Verb verb) {
  verb.stative = true;
  return verb;
}

// The English object has a preposition: "waits for".
constexpr Verb prepositional(std::string_view preposition, Verb verb) {
  verb.preposition = preposition;
  return verb;
}

constexpr Verb with(Classes instrument, Verb verb) {
  verb.instrument = instrument;
  return verb;
}

}  // namespace heed::microworld::bilingual::tables
