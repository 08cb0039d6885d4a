#include "base/json.h"

#include <set>
#include <vector>

#include "base/error.h"

namespace heed {
namespace {

constexpr int deepest_nesting = 64;

}  // namespace

Json parse_json(std::string_view text, std::string_view source) {
  // To the parser a NUL byte is the end, and whatever follows would go unread.
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
    fail(ErrorCode::corrupt_data, "{}: not valid JSON ({})", source, error.what());
  }
}

}  // namespace heed
