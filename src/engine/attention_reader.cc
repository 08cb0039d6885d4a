// Lazy attention behind standard types, with the maps of the heads used last.
#include "base/error.h"
#include "engine/facade.h"
#include "engine/model_passes.h"
#include "heed/explain.h"
#include "microscope/attention/head_scan.h"
#include "microscope/attention/recorded_attention.h"
#include "model/input_checks.h"

namespace heed {
namespace {

AttentionReader::Cells cells_of(const Tensor<float>& values) {
  return {.rows = values.shape()[0],
          .columns = values.shape()[1],
          .values = {values.span().begin(), values.span().end()}};
}

}  // namespace

struct AttentionReader::Parts {
  LazyAttention attention;
  AttentionMaps maps{};

  AttentionPyramid& map_of(std::int64_t layer, std::int64_t head, AttentionValues values) {
    return maps.of(attention, layer, head, values);
  }
};

AttentionReader::AttentionReader(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
AttentionReader::AttentionReader(AttentionReader&&) noexcept = default;
AttentionReader& AttentionReader::operator=(AttentionReader&&) noexcept = default;
AttentionReader::~AttentionReader() = default;

// Tiles are computed from query and key.
static void require_unedited_patterns(const Transformer& transformer) {
  if (transformer.editor() == nullptr) return;
  for (std::int64_t layer = 0; layer < transformer.specification().layers; ++layer) {
    for (const PointKind kind : {PointKind::scores, PointKind::pattern}) {
      require(
          !transformer.editor()->edits({kind, layer}), ErrorCode::unsupported,
          "{} is changed in this model, and its attention cannot be read tile by tile: trace it",
          point_name({kind, layer}));
    }
  }
}

AttentionReader AttentionReader::read(const Transformer& transformer,
                                      std::span<const std::int32_t> tokens,
                                      const std::vector<std::int64_t>& layers) {
  require_text_fits(transformer.specification(), tokens);
  require_unedited_patterns(transformer);
  const auto positions = std::ssize(tokens);
  auto parts =
      std::make_unique<Parts>(Parts{LazyAttention(transformer.specification(), layers, positions)});
  const StackActivations activations(transformer.specification(), 1, positions, Keep::one_block, 0,
                                     transformer.device());
  transformer.forward({tokens.data(), {1, positions}},
                      {.sequences = {1, positions}, .probe = &parts->attention}, activations);
  return AttentionReader(std::move(parts));
}

std::int64_t AttentionReader::positions() const {
  return parts_->attention.positions(parts_->attention.layers().front());
}

std::int64_t AttentionReader::levels() const {
  return AttentionPyramid(parts_->attention, parts_->attention.layers().front(), 0).levels();
}

void AttentionReader::prepare(std::int64_t layer, std::int64_t head) {
  parts_->map_of(layer, head, AttentionValues::pattern).build_in_background();
}

AttentionReader::Cells AttentionReader::tile(const Tile& tile) {
  return cells_of(parts_->map_of(tile.layer, tile.head, tile.values)
                      .tile(tile.level, tile.row, tile.column, tile.pooling));
}

AttentionReader::Cells AttentionReader::region(const AttentionRegion& region) const {
  return cells_of(parts_->attention.region(region));
}

std::vector<float> AttentionReader::row(std::int64_t layer, std::int64_t head,
                                        std::int64_t query) const {
  return parts_->attention.row(layer, head, query);
}

std::vector<float> AttentionReader::column(std::int64_t layer, std::int64_t head,
                                           std::int64_t key) const {
  return parts_->attention.column(layer, head, key);
}

std::vector<AttendedPosition> AttentionReader::most_attended(std::int64_t layer, std::int64_t head,
                                                             std::int64_t query,
                                                             std::size_t count) const {
  return parts_->attention.most_attended(layer, head, query, count);
}

std::vector<AttendedPosition> AttentionReader::most_attending(std::int64_t layer, std::int64_t head,
                                                              std::int64_t key,
                                                              std::size_t count) const {
  return parts_->attention.most_attending(layer, head, key, count);
}

static std::vector<HeadSummary> summaries_of(const HeadScan& scan) {
  std::vector<HeadSummary> summaries;
  for (const RankedHead& head : scan.all()) {
    const HeadStatistics& statistics = head.statistics;
    summaries.push_back({.layer = head.layer,
                         .head = head.head,
                         .entropy = statistics.entropy,
                         .evenness = statistics.evenness,
                         .distance = statistics.distance,
                         .first = statistics.first,
                         .self = statistics.self,
                         .previous = statistics.previous,
                         .duplicate = statistics.duplicate,
                         .induction = statistics.induction,
                         .content_weight = statistics.content_weight,
                         .largest = statistics.largest,
                         .last = statistics.last,
                         .next = statistics.next});
  }
  return summaries;
}

std::vector<HeadSummary> heads(const Model& model, const Texts& texts, std::string_view kind) {
  const Transformer& transformer = ModelAccess::for_source(model, texts.source).transformer;
  const auto site = site_named(kind, transformer.architecture());
  const bool is_pair = transformer.architecture().is_encoder_decoder();
  require(is_pair ? site.has_value() : kind.empty(), ErrorCode::invalid_argument,
          "there is no kind of attention '{}': expected {}", kind.substr(0, 40),
          is_pair ? "encoder, decoder or cross" : "none, as the model has one stack");
  if (!is_pair) return summaries_of(scan_heads(transformer, texts.target));
  return summaries_of(scan_heads(RecordedPass(transformer, texts), {*site}));
}

}  // namespace heed
