#include "server/explorer/state.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace heed::server {
namespace {

constexpr std::int64_t longest_range = 1 << 20;

bool take_number(std::string_view& text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

StoredTrace& trace_of(State& state, const Request& request) {
  return state.traces.use(request.in_path("id"));
}

std::int64_t checked_position(std::int64_t position, const StoredTrace& trace) {
  const std::int64_t positions = trace.positions();
  require(position >= -positions && position < positions, ErrorCode::invalid_argument,
          "position {} does not exist: the text has positions 0 to {}, or from the end from -1 on",
          position, positions - 1);
  return position < 0 ? position + positions : position;
}

std::int64_t position_of(const Request& request, const StoredTrace& trace, std::int64_t fallback) {
  return checked_position(request.integer("position", fallback), trace);
}

std::int64_t checked_layer(std::int64_t layer, const GptConfig& config) {
  require(layer >= 0 && layer < config.layers, ErrorCode::invalid_argument,
          "layer {} does not exist: the model has layers 0 to {}", layer, config.layers - 1);
  return layer;
}

std::int64_t checked_head(std::int64_t head, const GptConfig& config) {
  require(head >= 0 && head < config.heads, ErrorCode::invalid_argument,
          "head {} does not exist: a layer has heads 0 to {}", head, config.heads - 1);
  return head;
}

std::vector<std::int64_t> index_list(const Request& request, const std::string& name) {
  const std::string text = request.parameter(name).value_or("");
  std::vector<std::int64_t> indices;
  for (std::string_view left = text; !left.empty();) {
    const std::size_t comma = std::min(left.find(','), left.size());
    const std::string_view part = left.substr(0, comma);
    left.remove_prefix(std::min(comma + 1, left.size()));
    std::string_view rest = part;
    std::int64_t first = 0;
    bool is_good = take_number(rest, first);
    std::int64_t last = first;
    if (is_good && rest.starts_with('-')) {
      rest.remove_prefix(1);
      is_good = take_number(rest, last) && first <= last && last - first < longest_range;
    }
    require(is_good && rest.empty(), ErrorCode::invalid_argument,
            "'{}' of {} is no number and no range such as 0-3", part.substr(0, 40), name);
    for (std::int64_t index = first; index <= last; ++index) indices.push_back(index);
    require(std::ssize(indices) <= longest_range, ErrorCode::invalid_argument,
            "{} names too many numbers", name);
  }
  return indices;
}

std::int64_t bounded(const Request& request, const std::string& name, std::int64_t fallback,
                     std::int64_t least, std::int64_t most) {
  const std::int64_t value = request.integer(name, fallback);
  require(value >= least && value <= most, ErrorCode::invalid_argument,
          "{} must be {} to {}, not {}", name, least, most, value);
  return value;
}

std::string one_of(const Request& request, const std::string& name,
                   const std::vector<std::string>& words) {
  const std::string word = request.parameter(name).value_or(words.front());
  if (std::ranges::find(words, word) != words.end()) return word;
  std::string known;
  for (const std::string& each : words) known += (known.empty() ? "" : ", ") + each;
  fail(ErrorCode::invalid_argument, "{} must be one of {}, not '{}'", name, known,
       word.substr(0, 40));
}

}  // namespace heed::server
