#include "generate/text_stream.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"

namespace heed {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

// The number of bytes that form a character or the start of one; 0 if none do. Second
// bytes as in the Unicode Standard, table 3-7.
struct Beginning {
  std::size_t bytes = 0;
  std::size_t wanted = 0;  // length of the character
};

Beginning read_beginning(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return {1, 1};
  if (first < 0xC2 || first > 0xF4) return {};
  const std::size_t wanted = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  const std::uint8_t least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const std::uint8_t most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  std::size_t bytes = 1;
  while (bytes < std::min(wanted, text.size())) {
    const bool second = bytes == 1;
    const std::uint8_t next = byte(bytes);
    if (next < (second ? least : 0x80) || next > (second ? most : 0xBF)) break;
    ++bytes;
  }
  return {bytes, wanted};
}

// The length of the longest suffix of `text` that is a prefix of `stop`.
std::size_t possible_beginning(std::string_view text, std::string_view stop) {
  for (std::size_t size = std::min(text.size(), stop.size() - 1); size > 0; --size) {
    if (text.ends_with(stop.substr(0, size))) return size;
  }
  return 0;
}

}  // namespace

TextStream::TextStream(std::vector<std::string> stop_strings)
    : stop_strings_(std::move(stop_strings)) {
  for (const std::string& stop : stop_strings_) {
    require(!stop.empty(), ErrorCode::invalid_argument, "a stop string must not be empty");
  }
}

std::string TextStream::push(std::string_view bytes) {
  if (stopped_) return {};
  pending_ += bytes;
  // 1: the first stop string
  std::size_t first = std::string::npos;
  for (const std::string& stop : stop_strings_) first = std::min(first, pending_.find(stop));
  if (first != std::string::npos) {
    stopped_ = true;
    truncate(first);
    return finish();
  }
  // 2: a possible start of one
  std::size_t held = 0;
  for (const std::string& stop : stop_strings_) {
    held = std::max(held, possible_beginning(pending_, stop));
  }
  return take(pending_.size() - held);
}

std::string TextStream::push_hidden(std::string_view bytes) {
  if (stopped_) return {};
  hidden_.push_back({pending_.size(), pending_.size() + bytes.size()});
  return push(bytes);
}

void TextStream::truncate(std::size_t end) {
  pending_.resize(end);
  std::erase_if(hidden_, [&](const Hidden& part) { return part.begin >= end; });
  if (!hidden_.empty()) hidden_.back().end = std::min(hidden_.back().end, end);
}

std::string TextStream::finish() {
  std::string text = take(pending_.size());
  if (!pending_.empty()) text += replacement;  // an incomplete character
  pending_.clear();
  hidden_.clear();
  return text;
}

// Removes pending_[0, end), and returns its whole characters that are not hidden. A hidden part
// ends a character before it.
std::string TextStream::take(std::size_t end) {
  std::string text;
  std::size_t i = 0;
  auto part = hidden_.begin();
  while (i < end) {
    if (part != hidden_.end() && part->begin == i) {
      if (part->end > end) break;
      i = (part++)->end;
      continue;
    }
    const std::size_t limit = part != hidden_.end() ? std::min(part->begin, end) : end;
    const auto [bytes, wanted] = read_beginning(std::string_view(pending_).substr(i, limit - i));
    if (bytes < wanted && i + bytes == end) break;
    if (bytes == wanted && bytes > 0) {
      text.append(pending_, i, bytes);
    } else {
      text += replacement;
    }
    i += std::max<std::size_t>(bytes, 1);
  }
  pending_.erase(0, i);
  hidden_.erase(hidden_.begin(), part);
  for (Hidden& later : hidden_) later = {later.begin - i, later.end - i};
  return text;
}

}  // namespace heed
