// What people write about a pair of texts: points, interventions and edges of an encoder-decoder,
// and requests to /api/pairs. Each is refused with Error{invalid_argument} or a status, or means
// something that the model can do. The model is a tiny one.
//
// A byte in front chooses what the rest is read as; parts of a request end with a zero byte.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "microscope/intervene/intervention_text.h"
#include "microscope/traces/activation_trace.h"
#include "microscope/traces/point_names.h"
#include "server/explorer/pair_routes.h"
#include "tokenizer/character_tokenizer.h"

namespace heed {
namespace {

PairModel tiny_translator() {
  constexpr std::string_view characters = "abcdefgh {}[]\",:0123456789";
  StackSpecification decoder = make_gpt_config(2, 2, 8, 12, 64);
  decoder.end_of_text = 2;
  StackSpecification encoder = decoder;
  encoder.role = StackRole::encoder;
  encoder.has_unembedding = false;
  encoder.block.attention.mask.kind = MaskKind::full;
  decoder.block.cross_attention = decoder.block.attention;
  decoder.block.cross_attention->positions = PositionKind::none;
  decoder.block.cross_attention->mask.kind = MaskKind::full;
  auto model = std::make_shared<Transformer>(
      Architecture{.stacks = {encoder, decoder}, .padding = 0, .decoder_start = 1});
  model->parameters().initialize(1);
  const std::shared_ptr<const Tokenizer> tokenizer =
      train_character_tokenizer(std::span(&characters, 1));
  return {"tiny", model, tokenizer, tokenizer};
}

const PairModel& translator() {
  static const PairModel model = tiny_translator();
  return model;
}

void require_that(bool holds) {
  if (!holds) std::abort();
}

void read_point_names(std::string_view text) {
  for (const Point& point : points_named(text, translator().architecture())) {
    const auto read = point_from_name(point_name(point));
    require_that(read && read->kind == point.kind && read->layer == point.layer);
  }
}

void run_edited(std::vector<Intervention> interventions) {
  const auto editor =
      std::make_shared<Interventions>(translator().architecture(), std::move(interventions));
  const RecordedPass pass(*translator().model, {.source = {3, 4, 5, 2}, .target = {1, 6, 7}},
                          editor);
  require_that(pass.final_rows(StackSite::encoder).extent(0) == 4 &&
               pass.final_rows().extent(0) == 3);
}

void edit_points(std::string_view text) {
  std::vector<Intervention> interventions;
  for (const InterventionPoint& each : parse_points(translator().architecture(), text)) {
    interventions.push_back({each.point, each.where, SetZero{}});
  }
  run_edited(std::move(interventions));
}

void cut_edges(std::string_view text) {
  const HeadEdges edges = parse_edges(text);
  std::vector<Intervention> interventions;
  for (const InterventionPoint& each : pattern_points(translator().architecture(), edges.head)) {
    interventions.push_back(
        {each.point, each.where, CutEdges{edges.edges, CutEdges::Rest::renormalised}});
  }
  run_edited(std::move(interventions));
}

void set_mask(std::string_view text) {
  const auto [where, kind] = parse_assignment(text, "encoder=causal");
  const SetMask mask = parse_mask(kind);
  std::vector<Intervention> interventions;
  for (const InterventionPoint& each : pattern_points(translator().architecture(), where)) {
    interventions.push_back(
        {{PointKind::scores, each.point.layer, each.point.site}, each.where, mask});
  }
  run_edited(std::move(interventions));
}

struct PairServer {
  server::Compute compute;
  server::Router router;
  std::vector<server::Router::Route> routes;

  PairServer() {
    server::register_pairs(router, compute, translator(), 1 << 18);
    routes = router.routes();
  }
};

std::string part_of(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\0'), rest.size());
  std::string part(rest.substr(0, end));
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

// A route's {names} are parts of the input; an empty {id} is a pair that is there, or 0.
void request_pairs(std::size_t choice, std::string_view rest) {
  static PairServer pairs;
  const server::Router::Route& route = pairs.routes[choice % pairs.routes.size()];
  server::Request made = server::parse_request("POST", "/api/pairs");
  made.body = R"({"source":"abc","target":"de"})";
  const server::Reply pair = pairs.router.handle(std::move(made));
  require_that(pair.status == 200);
  std::string address;
  for (std::size_t begin = 0; begin < route.pattern.size();) {
    const std::size_t brace = std::min(route.pattern.find('{', begin), route.pattern.size());
    address += route.pattern.substr(begin, brace - begin);
    if (brace == route.pattern.size()) break;
    const std::size_t end = route.pattern.find('}', brace);
    const std::string name = route.pattern.substr(brace + 1, end - brace - 1);
    const std::string part = part_of(rest);
    if (!part.empty()) {
      address += part;
    } else if (name == "id") {
      address += parse_json(pair.body, "reply")["id"].get<std::string>();
    } else {
      address += name == "kind" ? "cross" : "0";
    }
    begin = end + 1;
  }
  const std::string query = part_of(rest);
  if (!query.empty()) address += "?" + query;
  server::Request request = server::parse_request(route.method, address);
  constexpr std::array<std::string_view, 3> fronts{
      "", R"({"source":"abc","target":"de",)",
      R"({"source":"abc","target":"de","interventions":[{)"};
  constexpr std::array<std::string_view, 3> backs{"", "}", "}]}"};
  const std::size_t frame = choice / pairs.routes.size() % fronts.size();
  request.body = std::string(fronts[frame]) + std::string(rest) + std::string(backs[frame]);
  const server::Reply reply = pairs.router.handle(std::move(request));
  require_that(reply.status == 200 || (reply.status >= 400 && reply.status < 500));
}

void read_pair_input(std::size_t choice, std::string_view rest) {
  switch (choice % 8) {
    case 0: return read_point_names(rest);
    case 1: return edit_points(rest);
    case 2: return cut_edges(rest);
    case 3: return set_mask(rest);
    default: break;
  }
  if (rest.empty()) return;
  const auto route = static_cast<unsigned char>(rest.front());
  request_pairs(route, rest.substr(1));
}

}  // namespace
}  // namespace heed

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    heed::read_pair_input(data[0], rest);
  } catch (const heed::Error& error) {
    if (error.code() != heed::ErrorCode::invalid_argument &&
        error.code() != heed::ErrorCode::unsupported) {
      std::abort();
    }
  }
  return 0;
}
