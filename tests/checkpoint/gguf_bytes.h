// The bytes of GGUF files, right or wrong, for tests and fuzz targets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/gguf.h"

namespace heed::testing {

// Appends what it is told, in order; nothing is checked.
class GgufBytes {
 public:
  template <class Number>
  GgufBytes& number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  GgufBytes& raw(std::string_view bytes) {
    bytes_.append(bytes);
    return *this;
  }
  GgufBytes& text(std::string_view text) {
    number<std::uint64_t>(text.size());
    return raw(text);
  }
  GgufBytes& header(std::uint64_t tensors, std::uint64_t entries, std::uint32_t version = 3) {
    return raw("GGUF").number(version).number(tensors).number(entries);
  }
  GgufBytes& key(std::string_view name, GgufType type) {
    return text(name).number(static_cast<std::uint32_t>(type));
  }
  GgufBytes& entry(std::string_view name, std::string_view value) {
    return key(name, GgufType::string).text(value);
  }
  GgufBytes& array(std::string_view name, GgufType element, std::uint64_t count) {
    return key(name, GgufType::array).number(static_cast<std::uint32_t>(element)).number(count);
  }
  // Extents as the file lists them: innermost first.
  GgufBytes& tensor(std::string_view name, std::initializer_list<std::uint64_t> extents,
                    std::uint32_t type, std::uint64_t offset) {
    text(name).number(static_cast<std::uint32_t>(extents.size()));
    for (const std::uint64_t extent : extents) number(extent);
    return number(type).number(offset);
  }
  GgufBytes& pad(std::size_t alignment = 32) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment, '\0');
    return *this;
  }

  const std::string& string() const { return bytes_; }
  std::span<const std::byte> span() const { return std::as_bytes(std::span(bytes_)); }

 private:
  std::string bytes_;
};

}  // namespace heed::testing
