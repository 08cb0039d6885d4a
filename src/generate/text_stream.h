// From the bytes of tokens to text that can be shown at once: whole characters only, and nothing
// that may yet turn out to be a stop string.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed {

// What comes out is always valid UTF-8: bytes that are no part of a character become U+FFFD, one
// for each maximal part of a character that was left incomplete.
class TextStream {
 public:
  // Throws Error{invalid_argument} for an empty stop string.
  explicit TextStream(std::vector<std::string> stop_strings = {});

  // Takes the bytes of the next token and returns the text that is certain by now.
  std::string push(std::string_view bytes);

  // Whether a stop string has been found; it and what follows are never returned.
  bool stopped() const { return stopped_; }

  // Returns what was held back.
  std::string finish();

 private:
  std::string take(std::size_t end);

  std::vector<std::string> stop_strings_;
  std::string pending_;  // taken, not yet returned
  bool stopped_ = false;
};

}  // namespace heed
