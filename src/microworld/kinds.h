// One procedure per kind of story. Each writes a whole story.
#pragma once

#include <span>

#include "microworld/writer.h"

namespace heed::microworld {

void tell_creature(Writer& writer);  // two creatures meet; adjectives decide what they do
void tell_market(Writer& writer);    // goods on stalls; adjectives decide what becomes of them
void tell_outing(Writer& writer);    // a day with two words of several senses
void tell_letter(Writer& writer);    // thanks for a present, and one word of several senses
void tell_tale(Writer& writer);      // two names that several bearers share
void tell_finding(Writer& writer);   // things that go back to their owners
void tell_mystery(Writer& writer);   // one clue, far before the murderer's name
void tell_album(Writer& writer);     // captions and sayings, a line each

// Chooses one of `kinds` (empty: all) by their weights and writes such a story.
void tell(Writer& writer, std::span<const StoryKind> kinds = {});

}  // namespace heed::microworld
