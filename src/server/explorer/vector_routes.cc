// Vectors of the residual stream: comparison of two positions, projection of all positions, and the
// words that a vector points to.
#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "engine/views/report_json.h"
#include "engine/views/token_json.h"
#include "microscope/explain/vectors.h"
#include "microscope/explain/word_directions.h"
#include "microscope/intervene/intervention.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/point_names.h"
#include "server/explorer/state.h"

namespace heed::server {
namespace {

// "t4:7" or "t4:-1".
struct TracePosition {
  StoredTrace& trace;
  std::int64_t position;
};

TracePosition trace_position(TraceState& state, const Request& request, const std::string& name) {
  const std::string text = request.parameter(name).value_or("");
  const std::size_t colon = text.rfind(':');
  std::int64_t position = 0;
  const char* const end = text.data() + text.size();
  const bool is_valid = colon != std::string::npos && colon > 0 &&
                        std::from_chars(text.data() + colon + 1, end, position).ptr == end &&
                        colon + 1 < text.size();
  require(is_valid, ErrorCode::invalid_argument,
          "{} must be a trace and a position such as t1:4, not '{}'", name, text.substr(0, 40));
  StoredTrace& trace = state.traces.use_of_one_text(text.substr(0, colon), "vectors are compared");
  return {trace, checked_position(position, trace)};
}

Reply compare_streams(TraceState& state, const Request& request) {
  const TracePosition first = trace_position(state, request, "first");
  const TracePosition second = trace_position(state, request, "second");
  const StackSpecification& config = first.trace.specification();
  require(second.trace.specification().channels == config.channels &&
              second.trace.specification().layers == config.layers,
          ErrorCode::invalid_argument, "{} and {} are of models of different shapes",
          first.trace.id, second.trace.id);
  const std::vector<Point> points = depth_points(first.trace.pass->architecture());
  Capture of_first(points), of_second(points);
  first.trace.pass->replay(of_first);
  second.trace.pass->replay(of_second);
  OrderedJson layers = OrderedJson::array();
  for (const Point& point : points) {
    const std::span<const float> a = of_first.at(point).view()[0][first.position].span();
    const std::span<const float> b = of_second.at(point).view()[0][second.position].span();
    const VectorComparison difference = compare_vectors(a, b);
    layers.push_back({{"point", point_name(point)},
                      {"cosine", json_number(difference.cosine)},
                      {"distance", json_number(difference.distance)},
                      {"first_norm", json_number(difference.first_length)},
                      {"second_norm", json_number(difference.second_length)}});
  }
  return json_reply({{"layers", std::move(layers)}});
}

Point stream_point(const Request& request, const StackSpecification& config) {
  const std::string name = request.parameter("point").value_or(
      fmt::format("blocks.{}.hook_resid_post", config.layers - 1));
  const std::vector<Point> points = points_named(name, config);
  require(points.size() == 1, ErrorCode::invalid_argument,
          "'{}' is a point of {} layers: name one, such as {}", name.substr(0, 80), points.size(),
          point_name(points.front()));
  const PointShape shape = point_shape(config, points.front().kind);
  require(!shape.is_plane && !shape.has_heads && shape.width > 1, ErrorCode::invalid_argument,
          "{} does not have one vector per position to project", point_name(points.front()));
  return points.front();
}

Reply projection(TraceState& state, const Request& request) {
  std::vector<StoredTrace*> traces{&one_text_of(state, request, "the projection of vectors is")};
  const auto other = request.parameter("other");
  if (other) {
    traces.push_back(&state.traces.use_of_one_text(*other, "the projection of vectors is"));
  }
  const Point point = stream_point(request, traces.front()->specification());
  std::int64_t rows = 0;
  for (const StoredTrace* trace : traces) rows += trace->positions();
  const std::int64_t width = point_shape(traces.front()->specification(), point.kind).width;
  Tensor<float> vectors(Shape{rows, width});
  float* to = vectors.data();
  for (const StoredTrace* trace : traces) {
    require(point_shape(trace->specification(), point.kind).width == width &&
                point.layer < trace->specification().layers,
            ErrorCode::invalid_argument, "{} and {} are of models of different shapes",
            traces.front()->id, trace->id);
    Capture capture(std::vector<Point>{point});
    trace->pass->replay(capture);
    to = std::ranges::copy(capture.at(point).span(), to).out;
  }
  const PrincipalPlane plane = principal_plane(vectors);
  OrderedJson points = OrderedJson::array();
  std::size_t row = 0;
  for (const StoredTrace* trace : traces) {
    for (std::int64_t t = 0; t < trace->positions(); ++t, ++row) {
      points.push_back({{"trace", trace->id},
                        {"position", t},
                        {"x", json_number(plane.points[row][0])},
                        {"y", json_number(plane.points[row][1])}});
    }
  }
  return json_reply({{"point", point_name(point)},
                     {"points", std::move(points)},
                     {"explained", {plane.explained[0], plane.explained[1]}}});
}

constexpr std::int64_t max_near_words = 100;
constexpr std::int64_t max_followed_words = 16;
constexpr std::int64_t other_words = 32;

Reply nearest(TraceState& state, const Request& request) {
  const StoredTrace& trace = one_text_of(state, request, "the search for nearest words is");
  return json_reply(nearest_words_json(
      trace.model(), nearest_words(*trace.pass, position_of(request, trace),
                                   bounded(request, "top", 6, 1, max_near_words), request.stop)));
}

OrderedJson numbers_json(std::span<const double> numbers) {
  OrderedJson list = OrderedJson::array();
  for (const double number : numbers) list.push_back(json_number(number));
  return list;
}

Reply directions(TraceState& state, const Request& request) {
  const StoredTrace& trace = one_text_of(state, request, "the direction of a vector is");
  const std::int64_t position = position_of(request, trace);
  const auto direction = one_of(request, "direction", {"read", "next"}) == "next"
                             ? WordDirection::next
                             : WordDirection::read;
  std::vector<std::int32_t> tokens;
  for (const std::int64_t token : index_list(request, "tokens")) {
    require(token >= 0 && token < trace.specification().vocabulary_size,
            ErrorCode::invalid_argument, "token {} is not in the vocabulary of {}", token,
            trace.specification().vocabulary_size);
    tokens.push_back(static_cast<std::int32_t>(token));
  }
  require(!tokens.empty() && std::ssize(tokens) <= max_followed_words, ErrorCode::invalid_argument,
          "tokens= lists 1 to {} ids of tokens, not {}", max_followed_words, tokens.size());
  const std::vector<std::int32_t> others =
      spread_tokens(trace.specification().vocabulary_size, other_words, tokens);
  require(!others.empty(), ErrorCode::invalid_argument,
          "all {} tokens of the vocabulary are listed: there is none to compare them with",
          tokens.size());
  Capture capture(stream_points(trace.pass->architecture()));
  trace.pass->replay(capture);
  const Transformer& model = trace.model().transformer;
  const WordCosines found =
      word_cosines(vectors_at(capture, position), word_directions(model, tokens, direction),
                   word_directions(model, others, direction));
  OrderedJson points = OrderedJson::array(), words = OrderedJson::array();
  for (const Point& point : capture.points()) points.push_back(point_name(point));
  for (std::size_t word = 0; word < tokens.size(); ++word) {
    words.push_back({{"token", token_json(trace.model(), tokens[word])},
                     {"cosines", numbers_json(found.words[word])}});
  }
  return json_reply({{"position", position},
                     {"points", std::move(points)},
                     {"words", std::move(words)},
                     {"others", others.size()},
                     {"mean", numbers_json(found.others_mean)},
                     {"largest", numbers_json(found.others_largest)}});
}

}  // namespace

void add_vector_routes(TraceRoutes& routes) {
  routes.add("GET", "/api/vectors", compare_streams);
  routes.add("GET", "/api/traces/{id}/projection", projection);
  routes.add("GET", "/api/traces/{id}/nearest", nearest);
  routes.add("GET", "/api/traces/{id}/directions", directions);
}

}  // namespace heed::server
