// What people write to the microscope: points and globs of them, lists of layers, heads and
// positions, sizes, places of interventions with their values and edges. Each is refused with
// Error{invalid_argument}, is a point of other models (Error{unsupported}), or means something that
// a model can do. The models are tiny: one of one text, and a translator.
//
// A byte in front chooses what the rest is read as; parts of a request end with a zero byte.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "allowed_errors.h"
#include "base/error.h"
#include "base/numbers.h"
#include "engine/edits.h"
#include "microscope/intervene/intervention_text.h"
#include "microscope/patch/patch.h"
#include "microscope/traces/activation_trace.h"
#include "microscope/traces/point_names.h"
#include "tiny_translator.h"

namespace heed {
namespace {

const std::vector<std::int32_t> tokens{3, 1, 4, 1, 5};

const Transformer& tiny_model() {
  static const Transformer model = [] {
    Transformer made({.stacks = {make_gpt_config(2, 2, 8, 16, 9)}});
    made.parameters().initialize(1);
    return made;
  }();
  return model;
}

const Transformer& translator() {
  static const Transformer made = tiny_translator();
  return made;
}

void expect(bool holds) {
  if (!holds) std::abort();
}

std::string next_part(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\0'), rest.size());
  const std::string part(rest.substr(0, end));
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

// Numbers of other passes are never asked for.
std::vector<std::int64_t> few_indices(std::string_view& rest) {
  std::vector<std::int64_t> indices = parse_indices(next_part(rest));
  indices.resize(std::min<std::size_t>(indices.size(), 64));
  return indices;
}

void read_points(std::string_view text) {
  const std::vector<Point> points = points_named(text, tiny_model().specification());
  expect(!points.empty());
  for (const Point& point : points) expect(point_from_name(point_name(point)) == point);
}

void trace_request(std::string_view rest) {
  TraceRequest request;
  for (std::string part = next_part(rest); !part.empty(); part = next_part(rest)) {
    request.points.push_back(part);
  }
  request.layers = few_indices(rest);
  request.heads = few_indices(rest);
  request.positions = few_indices(rest);
  request.budget = parse_bytes(next_part(rest));
  const Trace trace = trace_prompt(tiny_model(), tokens, request);
  std::int64_t bytes = 0;
  for (const TracedArray& array : trace.arrays) {
    std::int64_t size = 1;
    for (const std::int64_t extent : array.shape) size *= extent;
    expect(size == std::ssize(array.values));
    bytes += size * std::int64_t{sizeof(float)};
  }
  expect(bytes <= request.budget);
}

// A pass with the edit: whatever could be read can be done.
void edit(std::string where, decltype(Edit::change) change) {
  const std::vector<Edit> edits{{std::move(where), std::move(change)}};
  Interventions editor(tiny_model().specification(), resolve_edits(tiny_model(), edits));
  trace_prompt(tiny_model(), tokens, {.points = {"ln_final", "pattern"}}, {}, &editor);
}

void cut_edges(std::string_view text) {
  HeadEdges cut = parse_edges(text);
  expect(!cut.edges.empty());
  edit(std::move(cut.head), CutEdges{std::move(cut.edges), CutEdges::Rest::renormalised});
}

void scale(std::string_view text) {
  const auto [where, factor] = parse_assignment(text, "L2H3=0.5");
  edit(where, ScaleBy{parse_factor(factor)});
}

void steer(std::string_view text) {
  const auto [where, factor] = parse_assignment(text, "L2H3=0.5");
  edit(where,
       SteerBy{
           .factor = parse_factor(factor), .toward = {.target = {1, 2}}, .away = {.target = {3}}});
}

void set_mask(std::string_view text) {
  const auto [where, kind] = parse_assignment(text, "self=none");
  edit(where, parse_mask(kind));
}

void name_grid(std::string_view text) {
  expect(patch_grid_name(patch_grid_from_name(std::string(text))) == text);
}

void read_pair_points(std::string_view text) {
  for (const Point& point : points_named(text, translator().architecture())) {
    const auto read = point_from_name(point_name(point));
    expect(read && read->kind == point.kind && read->layer == point.layer);
  }
}

void run_edited_pair(std::vector<Intervention> interventions) {
  const auto editor =
      std::make_shared<Interventions>(translator().architecture(), std::move(interventions));
  const RecordedPass pass(translator(), {.source = {3, 4, 5, 2}, .target = {1, 6, 7}}, editor);
  expect(pass.final_rows(StackSite::encoder).extent(0) == 4 &&
         pass.final_rows(StackSite::decoder).extent(0) == 3);
}

void edit_pair_points(std::string_view text) {
  std::vector<Intervention> interventions;
  for (const InterventionPoint& each : parse_points(translator().architecture(), text)) {
    interventions.push_back({each.point, each.where, SetZero{}});
  }
  run_edited_pair(std::move(interventions));
}

void cut_pair_edges(std::string_view text) {
  const HeadEdges edges = parse_edges(text);
  std::vector<Intervention> interventions;
  for (const InterventionPoint& each : pattern_points(translator().architecture(), edges.head)) {
    interventions.push_back(
        {each.point, each.where, CutEdges{edges.edges, CutEdges::Rest::renormalised}});
  }
  run_edited_pair(std::move(interventions));
}

void read(std::size_t choice, std::string_view rest) {
  switch (choice % 13) {
    case 0: return read_points(rest);
    case 1: return trace_request(rest);
    case 2: return edit(std::string(rest), SetZero{});
    case 3: return edit(std::string(rest), FreezePattern{{.target = {2, 7, 1}}});
    case 4: return edit(std::string(rest), SetMean{{{.target = {2, 7, 1}}}});
    case 5: return cut_edges(rest);
    case 6: return scale(rest);
    case 7: return steer(rest);
    case 8: return read_pair_points(rest);
    case 9: return edit_pair_points(rest);
    case 10: return cut_pair_edges(rest);
    case 11: return set_mask(rest);
    default: return name_grid(rest);
  }
}

}  // namespace
}  // namespace heed

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  heed::fuzz::allow_errors({heed::ErrorCode::invalid_argument, heed::ErrorCode::unsupported},
                           [&] { heed::read(data[0], rest); });
  return 0;
}
