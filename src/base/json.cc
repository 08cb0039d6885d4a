#include "base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <vector>

#include "base/decimal.h"
#include "base/error.h"

namespace heed {
namespace {

constexpr int deepest_nesting = 64;

}  // namespace

Json parse_json(std::string_view text, std::string_view source) {
  // The parser treats a NUL byte as the end and would ignore the rest.
  const std::size_t nul = text.find('\0');
  require(nul == std::string_view::npos, ErrorCode::corrupt_data,
          "{}: not valid JSON (byte {} is NUL)", source, nul);
  std::vector<std::set<std::string>> open_objects;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    require(depth <= deepest_nesting, ErrorCode::corrupt_data,
            "{}: JSON nested deeper than {} levels", source, deepest_nesting);
    if (event == Event::object_start) open_objects.emplace_back();
    if (event == Event::object_end) open_objects.pop_back();
    if (event == Event::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      require(open_objects.back().insert(key).second, ErrorCode::corrupt_data,
              "{}: the JSON key '{}' appears twice", source, key);
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::exception& error) {
    std::string_view problem = error.what();  // "[json.exception.parse_error.101] parse error at …"
    if (problem.starts_with('['))
      problem.remove_prefix(std::min(problem.find(' ') + 1, problem.size()));
    fail(ErrorCode::corrupt_data, "{}: not valid JSON ({})", source, problem);
  }
}

OrderedJson json_number(float value) {
  if (!std::isfinite(value)) return nullptr;
  return shortest_decimal(value);
}

OrderedJson json_number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return value;
}

void append_json_number(std::string& text, float value) {
  if (!std::isfinite(value)) {
    text += "null";
    return;
  }
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  text.append(digits, end);
}

std::string json_text(const OrderedJson& document) {
  return document.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace heed
