#include "engine/example_text.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/json.h"

namespace heed::examples {

std::string text_in(const Json& object, const char* key) {
  const Json* found = find_json_member(object, key);
  require(found != nullptr, ErrorCode::corrupt_data, "an example has no '{}'", key);
  return json_string(*found, {fmt::format("'{}' of an example", key)});
}

std::int64_t occurrence_in(const Json& object, const char* key) {
  const Json* found = find_json_member(object, key);
  return found == nullptr ? 0 : json_integer(*found, {fmt::format("'{}'", key)}, 0);
}

std::string percentage(double share) {
  if (share < 0.001) return "less than 0.1 %";
  if (share > 0.999) return "over 99.9 %";
  const bool fine = share < 0.0995 || share > 0.9945;
  return fmt::format("{:.{}f} %", 100 * share, fine ? 1 : 0);
}

std::string quoted(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return fmt::format("“{}”", begin == text.npos ? text : text.substr(begin));
}

std::string listed(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += i + 1 < items.size() ? ", " : " and ";
    text += items[i];
  }
  return text;
}

double rounded(double value) { return std::round(value * 1e5) / 1e5; }

}  // namespace heed::examples
