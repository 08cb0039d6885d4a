// Reads the records that the scripts of oracle/ write: little-endian numbers and sized strings.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/utf8.h"

namespace heed {

class RecordReader {
 public:
  explicit RecordReader(std::string_view bytes) : bytes_(bytes) {}

  bool at_end() const { return bytes_.empty(); }
  std::string_view take(std::size_t size) {
    EXPECT_LE(size, bytes_.size()) << "the records are truncated";
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  std::uint32_t number() {
    std::uint32_t value = 0;
    const std::string_view bytes = take(sizeof value);
    if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  std::string_view text() { return take(number()); }
  std::vector<std::int32_t> ids() {
    std::vector<std::int32_t> ids(number());
    const std::string_view bytes = take(ids.size() * sizeof(std::int32_t));
    if (!bytes.empty()) std::memcpy(ids.data(), bytes.data(), bytes.size());
    return ids;
  }

 private:
  std::string_view bytes_;
};

// Whether the text has a character for which `disputed` is true.
inline bool holds_disputed(std::string_view text, const std::vector<bool>& disputed) {
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Character character = read_utf8(text, i);
    if (disputed[character.code_point]) return true;
    i += character.length;
  }
  return false;
}

}  // namespace heed
