#include "train/sample_sentence.h"

#include <algorithm>

#include "base/utf8.h"

namespace heed {
namespace {

constexpr std::size_t searched_bytes = std::size_t{64} << 10;  // at the beginning of each text
constexpr std::size_t least_bytes = 20;  // shorter lines only if all are short
constexpr std::size_t most_bytes = 160;
constexpr std::string_view space = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(space);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(space) + 1 - begin);
}

// The text without its last word; empty where it has one word.
std::string_view without_last_word(std::string_view text) {
  const std::size_t end = text.find_last_of(space);
  return end == std::string_view::npos ? std::string_view() : trimmed(text.substr(0, end));
}

std::string_view shortened(std::string_view line, const Tokenizer& tokenizer,
                           std::int64_t most_tokens) {
  while (line.size() > most_bytes) line = without_last_word(line);
  while (!line.empty() && std::ssize(tokenizer.encode(line)) > most_tokens) {
    line = without_last_word(line);
  }
  return line;
}

}  // namespace

std::string sample_sentence(const Texts& texts, const Tokenizer& tokenizer,
                            std::int64_t most_tokens) {
  std::string_view longest;
  for (std::string_view text : texts) {
    text = text.substr(0, searched_bytes);
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      line = trimmed(line.substr(0, line.find("<|endoftext|>")));
      if (!is_valid_utf8(line)) continue;
      line = shortened(line, tokenizer, most_tokens);
      if (line.size() > longest.size()) longest = line;
      if (longest.size() >= least_bytes) return std::string(longest);
    }
  }
  return std::string(longest);
}

}  // namespace heed
