#include "microscope/patch/pair_patch.h"

#include <cmath>

#include "base/error.h"
#include "microscope/intervene/intervention.h"
#include "microscope/traces/capture.h"

namespace heed {
namespace {

struct PatchedPlace {
  PointKind kind;
  StackSite site;
  bool is_by_head;
};

PatchedPlace place_of(PairPatchPlace place) {
  switch (place) {
    case PairPatchPlace::encoder_stream:
      return {PointKind::residual_pre, StackSite::encoder, false};
    case PairPatchPlace::decoder_stream:
      return {PointKind::residual_pre, StackSite::decoder, false};
    case PairPatchPlace::encoder_heads: return {PointKind::mixed_values, StackSite::encoder, true};
    case PairPatchPlace::decoder_heads: return {PointKind::mixed_values, StackSite::decoder, true};
    case PairPatchPlace::cross_heads: break;
  }
  return {PointKind::cross_mixed_values, StackSite::decoder, true};
}

double log_probability(const RecordedPass& pass, std::int64_t position, std::int32_t token) {
  return std::log(pass.next_probabilities(position)[static_cast<std::size_t>(token)]);
}

Selection selected_cell(const PatchedPlace& place, std::int64_t index) {
  if (place.is_by_head) return {.heads = {index}, .neurons = {}};
  return {.heads = {}, .neurons = {}, .first_position = index, .last_position = index};
}

}  // namespace

PairPatch patch_pair(const RecordedPass& clean, const RecordedPass& corrupted,
                     const PairPatchRequest& request, const ProgressCallback& progress,
                     StopFlag stop) {
  const Architecture& architecture = clean.architecture();
  require(clean.sources() == corrupted.sources() && clean.positions() == corrupted.positions(),
          ErrorCode::invalid_argument,
          "patching needs texts of one length: the sources have {} and {} tokens, the targets {} "
          "and {}",
          clean.sources(), corrupted.sources(), clean.positions(), corrupted.positions());
  require(request.token >= 0 && request.token < architecture.decoder().vocabulary_size,
          ErrorCode::invalid_argument, "token {} is not in the vocabulary of {}", request.token,
          architecture.decoder().vocabulary_size);
  const std::int64_t position = request.position == -1 ? clean.positions() - 1 : request.position;
  PairPatch result{.clean = log_probability(clean, position, request.token),
                   .corrupted = log_probability(corrupted, position, request.token),
                   .cells = {}};

  const PatchedPlace place = place_of(request.place);
  const StackSpecification& stack = architecture.of(place.site);
  const bool is_encoder = place.site == StackSite::encoder;
  const std::int64_t columns = place.is_by_head
                                   ? point_shape(stack, place.kind).heads
                                   : (is_encoder ? clean.sources() : clean.positions());
  std::vector<Point> points;
  for (std::int64_t layer = 0; layer < stack.layers; ++layer) {
    points.push_back({place.kind, layer, place.site});
  }
  Capture values(points);
  clean.replay(values);
  result.cells = Tensor<float>(Shape{stack.layers, columns});
  for (std::int64_t layer = 0; layer < stack.layers; ++layer) {
    const Point& point = points[static_cast<std::size_t>(layer)];
    const ReplaceWith replacement(values.take(point));
    for (std::int64_t column = 0; column < columns; ++column) {
      require(!stop_requested(stop), ErrorCode::interrupted, "interrupted while patching");
      std::vector<Intervention> one;
      one.push_back({point, selected_cell(place, column), replacement});
      const RecordedPass patched(clean.model(), corrupted.texts(),
                                 std::make_shared<Interventions>(architecture, std::move(one)),
                                 {.keep = Keep::one_block});
      result.cells.view()(layer, column) =
          static_cast<float>(log_probability(patched, position, request.token));
      if (progress) progress({"patching", layer * columns + column + 1, result.cells.size()});
    }
  }
  return result;
}

}  // namespace heed
