// Converts the bytes of tokens to text for streaming: whole characters only, holding back what may
// be the start of a stop string.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed {

// The output is valid UTF-8: invalid bytes become U+FFFD, one for each maximal part of an
// incomplete character.
class TextStream {
 public:
  // Throws Error{invalid_argument} for an empty stop string.
  explicit TextStream(std::vector<std::string> stop_strings = {});

  // Appends the bytes of the next token and returns the text that is final now.
  std::string push(std::string_view bytes);

  // The same for a token that is left out of the text. It can still begin, end or be a stop string.
  std::string push_hidden(std::string_view bytes);

  // Whether a stop string has been found; it and the text after it are not returned.
  bool stopped() const { return stopped_; }

  // Returns the held-back text at the end.
  std::string finish();

 private:
  std::string take(std::size_t end);
  void truncate(std::size_t end);

  std::vector<std::string> stop_strings_;
  std::string pending_;  // received, not yet returned
  struct Hidden {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  std::vector<Hidden> hidden_;  // parts of pending_, in their order
  bool stopped_ = false;
};

}  // namespace heed
