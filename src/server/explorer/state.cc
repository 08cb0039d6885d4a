#include "server/explorer/state.h"

#include <algorithm>

#include "base/error.h"
#include "base/numbers.h"

namespace heed::server {

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

std::string stream_row_name(const Point& point) {
  return point.kind == PointKind::residual_post ? "final_post" : fmt::format("{}_pre", point.layer);
}

std::vector<std::int64_t> index_list(const Request& request, const std::string& name) {
  try {
    return parse_indices(request.parameter(name).value_or(""));
  } catch (const Error& error) {
    fail(error.code(), "{}: {}", name, error.what());
  }
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
  std::string word = request.parameter(name).value_or(words.front());
  if (std::ranges::find(words, word) != words.end()) return word;
  std::string known;
  for (const std::string& each : words) known += (known.empty() ? "" : ", ") + each;
  fail(ErrorCode::invalid_argument, "{} must be one of {}, not '{}'", name, known,
       word.substr(0, 40));
}

}  // namespace heed::server
