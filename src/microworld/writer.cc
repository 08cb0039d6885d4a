#include "microworld/writer.h"

#include <cmath>

namespace heed::microworld {

std::size_t Writer::choose(const Choice& choice) {
  const std::size_t option = chooser_.choose(choice);
  story_.log_probability += std::log(choice.probability(option));
  return option;
}

Span Writer::write(std::string_view text) {
  chooser_.wrote(text);
  const std::size_t begin = offset();
  story_.text += text;
  return {begin, offset()};
}

std::size_t Writer::pick(std::span<const std::string_view> texts) {
  const std::size_t option = choose({.count = texts.size(), .beginnings = texts});
  write(texts[option]);
  return option;
}

}  // namespace heed::microworld
