#include "server/explorer/state.h"

#include <algorithm>

#include "base/error.h"
#include "base/numbers.h"

namespace heed::server {

ChosenModel TraceState::explored_model() const {
  require(models != nullptr, ErrorCode::not_found,
          "this server's model is a translator: a trace is of a \"source\" and a \"target\"");
  return models->explored();
}

ChosenModel TraceState::held_translator() {
  require(load_translator != nullptr, ErrorCode::not_found,
          "this server's model is one decoder, not a translator: a source and a target need an "
          "encoder-decoder, such as heed explore -m DIR of one");
  if (translator == nullptr) translator = load_translator();
  return {.model = translator};
}

StoredTrace& trace_of(TraceState& state, const Request& request) {
  return state.traces.use(request.in_path("id"));
}

StoredTrace& one_text_of(TraceState& state, const Request& request, std::string_view what) {
  return state.traces.use_of_one_text(request.in_path("id"), what);
}

StoredTrace& two_texts_of(TraceState& state, const Request& request, std::string_view what) {
  return state.traces.use_of_two_texts(request.in_path("id"), what);
}

std::int64_t checked_position(std::int64_t position, const StoredTrace& trace) {
  const std::int64_t positions = trace.positions();
  require(position >= -positions && position < positions, ErrorCode::invalid_argument,
          "position {} does not exist: the {} has positions 0 to {}, or from the end from -1 on",
          position, trace.name_of(PairSide::target), positions - 1);
  return position < 0 ? position + positions : position;
}

std::int64_t position_of(const Request& request, const StoredTrace& trace, std::int64_t fallback) {
  return checked_position(request.integer("position", fallback), trace);
}

std::string stream_row_name(const Point& point) {
  return point.kind == PointKind::residual_pre ? fmt::format("{}_pre", point.layer) : "final_post";
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
