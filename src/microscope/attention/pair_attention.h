// Attention of a recorded pair as the pass used it, edited or not: any part of any head's plane, by
// tokens or by words.
#pragma once

#include <list>
#include <span>
#include <vector>

#include "microscope/attention/text_words.h"
#include "microscope/traces/pair_pass.h"

namespace heed {

// Which positions stand for a word of the target.
enum class WordRow {
  read,     // its last token: what the word attends to, once it is read
  written,  // the positions before its tokens, which write them: the mean of their rows
};

// Not thread-safe: planes of edited heads are kept as they are used.
class PairAttention {
 public:
  explicit PairAttention(const PairPass& pass) : pass_(pass) {}  // borrowed

  // As LazyAttention::region; rows are queries, columns keys.
  Tensor<float> region(AttentionSite kind, const AttentionRegion& region);
  // One head's whole pattern, (queries, keys).
  Tensor<float> pattern(AttentionSite kind, std::int64_t layer, std::int64_t head);

  // Of a zoomable map, whose last level is one tile: tiles of 256 × 256 cells, each of which pools
  // 2^level × 2^level elements.
  static constexpr std::int64_t tile_size = 256;
  std::int64_t levels(AttentionSite kind) const;
  Tensor<float> tile(AttentionSite kind, const AttentionMapTile& tile);

 private:
  struct Plane {
    AttentionSite kind;
    std::int64_t layer;
    AttentionValues values;
    Tensor<float> heads;  // (1, H, queries, keys)
  };
  const Plane& plane_of(AttentionSite kind, std::int64_t layer, AttentionValues values);

  const PairPass& pass_;
  std::list<Plane> planes_;  // of layers with an edited pattern, most recently used first
};

// A pattern (queries, keys) by words: (query words, key words). Keys of a word are summed, so that
// rows still sum to one. `row` says which rows stand for a word; words of which no position writes
// a token (the start of the target) have the row that reads them.
Tensor<float> by_words(View<const float> pattern, std::span<const TextWord> queries,
                       std::span<const TextWord> keys, WordRow row);

}  // namespace heed
