// Writes a story, left to right, as its choices are made, and records its probability and truth.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "microworld/chooser.h"
#include "microworld/story.h"

namespace heed::microworld {

class Writer {
 public:
  explicit Writer(Chooser& chooser) : chooser_(chooser) {}

  // Takes one option and counts its probability.
  std::size_t choose(const Choice& choice);
  std::size_t choose(std::size_t count) { return choose(Choice{.count = count}); }

  // Appends text; returns where it stands.
  Span write(std::string_view text);

  // Chooses one of the texts, all equally likely, and writes it; returns which.
  std::size_t pick(std::span<const std::string_view> texts);

  // False once the rest of the telling cannot matter any more.
  bool alive() const { return chooser_.alive(); }

  std::size_t offset() const { return story_.text.size(); }
  Story& story() { return story_; }

 private:
  Chooser& chooser_;
  Story story_;
};

}  // namespace heed::microworld
