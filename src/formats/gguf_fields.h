// Values of a GGUF file's metadata, read with errors that name the file, the key and the value.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "checkpoint/gguf.h"

namespace heed {

class GgufFields {
 public:
  // The file must outlive it.
  explicit GgufFields(const GgufFile& file) : file_(file) {}

  const std::string& source() const { return file_.source(); }
  bool has(std::string_view key) const { return file_.find_value(key) != nullptr; }

  struct Range {
    std::int64_t least = std::numeric_limits<std::int64_t>::min();
    std::int64_t most = std::numeric_limits<std::int64_t>::max();
  };

  // Nothing where the key is absent. Throw Error{corrupt_data} for a value of another type or out
  // of range.
  std::optional<std::int64_t> find_integer(std::string_view key, Range range) const {
    const auto value = find(key, [](const GgufValue& found) { return found.integer(); });
    require(!value || (*value >= range.least && *value <= range.most), ErrorCode::corrupt_data,
            "{}: '{}' is {}; expected {} to {}", source(), key, value.value_or(0), range.least,
            range.most);
    return value;
  }
  std::optional<double> find_number(std::string_view key) const {
    return find(key, [](const GgufValue& found) { return found.number(); });
  }
  std::optional<bool> find_boolean(std::string_view key) const {
    return find(key, [](const GgufValue& found) { return found.boolean(); });
  }
  std::optional<std::string> find_text(std::string_view key) const {
    return find(key, [](const GgufValue& found) { return std::string(found.text()); });
  }
  std::optional<std::vector<std::string_view>> find_texts(std::string_view key) const {
    return find(key, [](const GgufValue& found) { return found.texts(); });
  }
  std::optional<std::vector<double>> find_numbers(std::string_view key) const {
    return find(key, [](const GgufValue& found) { return found.numbers(); });
  }
  std::optional<std::vector<std::int64_t>> find_integers(std::string_view key) const {
    return find(key, [](const GgufValue& found) { return found.integers(); });
  }

  // Throws Error{corrupt_data} where there is none.
  template <class Value>
  Value need(std::string_view key, std::optional<Value> found) const {
    require(found.has_value(), ErrorCode::corrupt_data, "{}: '{}' is missing", source(), key);
    return *std::move(found);
  }

 private:
  template <class Read>
  auto find(std::string_view key, Read&& read) const
      -> std::optional<decltype(read(std::declval<const GgufValue&>()))> {
    const GgufValue* const value = file_.find_value(key);
    if (value == nullptr) return std::nullopt;
    try {
      return read(*value);
    } catch (const Error& error) {
      fail(ErrorCode::corrupt_data, "{}: '{}' {}", source(), key, error.what());
    }
  }

  const GgufFile& file_;
};

}  // namespace heed
