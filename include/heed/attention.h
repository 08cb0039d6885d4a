// Attention of long texts without a (T, T) buffer: statistics of every head, and any part of any
// head's pattern, computed on demand.
//
//   heed::AttentionReader attention = model.read_attention(tokens);
//   attention.tile({.layer = 5, .head = 1, .level = attention.levels() - 1});  // the whole plane
//   attention.most_attended(5, 1, position, 10);
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "heed/error.h"

namespace heed {

class Transformer;

// Statistics of one head: means over all queries of a text but the first; duplicate and induction
// over those whose token occurred before.
struct HeadSummary {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  double entropy = 0;         // of a row, in nats
  double evenness = 0;        // entropy divided by that of uniform attention
  double distance = 0;        // mean distance of the key, in tokens
  double first = 0;           // weight on the first token
  double self = 0;            // on the query's own token
  double previous = 0;        // on the previous token
  double duplicate = 0;       // on earlier copies of the query's token
  double induction = 0;       // on the tokens after those copies
  double content_weight = 0;  // largest weight before the previous token, excluding the first
  double largest = 0;         // largest weight of a row
  double last = 0;            // weight on the last token that the query sees
  double next = 0;            // on the next token, in an encoder
};

enum class AttentionValues { pattern, scores };
enum class Pooling { mean, max };

// A rectangle of one head's (T, T) plane, queries by keys, ends excluded, pooled. Parts outside the
// plane are cut off; an empty rectangle is an error.
struct AttentionRegion {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  std::int64_t query_begin = 0;
  std::int64_t query_end = 0;
  std::int64_t key_begin = 0;
  std::int64_t key_end = 0;
  std::int64_t pool = 1;  // a power of two: each cell pools pool × pool elements
  AttentionValues values = AttentionValues::pattern;
  Pooling pooling = Pooling::mean;
};

// A tile of a zoomable map: cells of level z pool 2^z × 2^z elements, in tiles of 256 × 256 cells.
struct AttentionMapTile {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  std::int64_t level = 0;
  std::int64_t row = 0;
  std::int64_t column = 0;
  AttentionValues values = AttentionValues::pattern;
  Pooling pooling = Pooling::mean;
};

// A position and its attention weight.
struct AttendedPosition {
  std::int64_t position = 0;
  float weight = 0;
};

// The attention of one text, from Model::read_attention(): queries, keys and the log-sum-exp of
// every row. Several threads may call const functions at once, while one thread at a time calls
// tile() or prepare().
class AttentionReader {
 public:
  using Tile = AttentionMapTile;
  struct Cells {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::vector<float> values;  // row by row
  };

  AttentionReader(AttentionReader&&) noexcept;
  AttentionReader& operator=(AttentionReader&&) noexcept;
  ~AttentionReader();

  std::int64_t positions() const;  // T
  std::int64_t levels() const;     // of the map; the last level is a single tile

  // Starts to build the coarse levels of a head's pattern on a background thread; tile() waits for
  // the levels it needs. The levels of recently used heads are cached, up to about 512 MiB.
  void prepare(std::int64_t layer, std::int64_t head);

  // All of these throw Error{invalid_argument} for layers, heads, positions and tiles that do not
  // exist. A tile has up to 256 × 256 cells, a region ⌈queries / pool⌉ × ⌈keys / pool⌉: rows are
  // queries, columns are keys. Means of the pattern include masked weights as zeros; means of
  // scores (divided by √D) exclude them, and are −∞ if all are masked.
  Cells tile(const Tile& tile);
  Cells region(const AttentionRegion& region) const;

  // (T) weights: of one query, 0 for later keys; or of one key, 0 for earlier queries.
  std::vector<float> row(std::int64_t layer, std::int64_t head, std::int64_t query) const;
  std::vector<float> column(std::int64_t layer, std::int64_t head, std::int64_t key) const;

  // Up to `count` largest weights of a row or a column, largest first.
  std::vector<AttendedPosition> most_attended(std::int64_t layer, std::int64_t head,
                                              std::int64_t query, std::size_t count) const;
  std::vector<AttendedPosition> most_attending(std::int64_t layer, std::int64_t head,
                                               std::int64_t key, std::size_t count) const;

 private:
  friend class Model;
  static AttentionReader read(const Transformer& transformer, std::span<const std::int32_t> tokens,
                              const std::vector<std::int64_t>& layers);
  struct Parts;
  explicit AttentionReader(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace heed
