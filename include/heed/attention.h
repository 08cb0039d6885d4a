// Attention of texts of any length, without a (T, T) buffer: what every head does, and any part of
// any head's pattern, computed when it is asked for.
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

class Gpt;

// Means over the queries of a text, from the second on; duplicate and induction over those of them
// whose token came before.
struct HeadSummary {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  double entropy = 0;    // of a row, in nats
  double evenness = 0;   // as a share of the largest entropy there could be
  double distance = 0;   // mean tokens back
  double first = 0;      // weight on the first token,
  double self = 0;       // on the token itself,
  double previous = 0;   // on the one just before,
  double duplicate = 0;  // on earlier copies of it,
  double induction = 0;  // on what followed those copies
  double telling = 0;    // largest weight further back than the one before, the first left out
};

enum class AttentionValues { pattern, scores };
enum class Pooling { mean, max };

// A rectangle of one head's (T, T) plane, queries by keys, ends not included, reduced. Beyond the
// plane a rectangle is cut off; an empty one is refused.
struct AttentionRegion {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  std::int64_t query_begin = 0;
  std::int64_t query_end = 0;
  std::int64_t key_begin = 0;
  std::int64_t key_end = 0;
  std::int64_t pool = 1;  // a power of two: a cell stands for pool × pool elements
  AttentionValues values = AttentionValues::pattern;
  Pooling pooling = Pooling::mean;
};

// A tile of a map that zooms: level z has cells of 2^z × 2^z elements, in tiles of 256 × 256.
struct AttentionMapTile {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  std::int64_t level = 0;
  std::int64_t row = 0;
  std::int64_t column = 0;
  AttentionValues values = AttentionValues::pattern;
  Pooling pooling = Pooling::mean;
};

// A position and what it is attended with.
struct AttendedPosition {
  std::int64_t position = 0;
  float weight = 0;
};

// What Model::read_attention read: queries, keys and a number a row. Functions that are const may
// be called by several threads at once; tile() and prepare() by one at a time, beside them.
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
  std::int64_t levels() const;     // of the map; the last is a single tile

  // Begins to make the coarse levels of a head's pattern on a thread of its own; tile() waits for
  // what it needs. The levels of the heads used last are kept, up to about half a GiB of them.
  void prepare(std::int64_t layer, std::int64_t head);

  // All of these throw Error{invalid_argument} for what does not exist. Tiles have up to 256 × 256
  // cells, a region ⌈queries / pool⌉ × ⌈keys / pool⌉: a row a query, a column a key. A mean of the
  // pattern counts masked weights as the zeros that they are; one of scores (divided by √D) leaves
  // them out, and is −∞ where all are masked.
  Cells tile(const Tile& tile);
  Cells region(const AttentionRegion& region) const;

  // (T) weights: of one query, 0 for later keys; for one key, 0 of earlier queries.
  std::vector<float> row(std::int64_t layer, std::int64_t head, std::int64_t query) const;
  std::vector<float> column(std::int64_t layer, std::int64_t head, std::int64_t key) const;

  // The `count` largest of a row or a column, or as many as there are, the largest first.
  std::vector<AttendedPosition> most_attended(std::int64_t layer, std::int64_t head,
                                              std::int64_t query, std::size_t count) const;
  std::vector<AttendedPosition> most_attending(std::int64_t layer, std::int64_t head,
                                               std::int64_t key, std::size_t count) const;

 private:
  friend class Model;
  static AttentionReader read(const Gpt& gpt, std::span<const std::int32_t> tokens,
                              const std::vector<std::int64_t>& layers);
  struct Parts;
  explicit AttentionReader(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace heed
