// Parameters of one pass through the model, shared by its stages.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/operands.h"
#include "model/editor.h"
#include "model/key_value_ring.h"
#include "model/probe.h"

namespace heed {

class KeyValueCache;

enum class DropoutPoint : std::uint64_t {
  embedding,
  pattern,
  attention_out,
  feed_forward_out,
  cross_pattern,
  cross_attention_out,
};

// Which elements a training pass drops: a pure function of (seed, pass, DropoutPoint, layer,
// element). Inactive outside training.
struct DropoutPlan {
  bool active = false;
  std::uint64_t seed = 0;
  std::uint64_t pass = 0;  // counts batches over the whole training run
  StackSite site = StackSite::only;
  // Of the batch that this pass computes a part of: its number in the whole batch.
  std::int64_t first_sequence = 0;
  // Of sequences of different lengths: the rows before it; −1: all have as many.
  std::int64_t first_row = -1;

  // Of a mask that has `rows` rows for each sequence.
  kernels::Dropout at(DropoutPoint point, std::int64_t layer, float rate, std::int64_t rows) const;
};

// What cross-attention attends to: the final rows of an encoder, source after source.
struct CrossMemory {
  View<const float> rows;                    // (M, C)
  std::span<const std::int64_t> row_starts;  // (sources + 1)
  // Keys and values of each source, projected once, instead of its rows.
  std::span<KeyValueCache* const> caches{};
  // (B): the source that a sequence attends to, those of one source side by side; empty: its own.
  std::span<const std::int64_t> sources{};

  std::size_t source(std::int64_t b) const {
    return sources.empty() ? static_cast<std::size_t>(b)
                           : static_cast<std::size_t>(sources[static_cast<std::size_t>(b)]);
  }
};

// What a pass of sequences of different lengths gives as its positions: which arithmetic a row gets
// never depends on the sequences beside it.
inline constexpr std::int64_t ragged_positions = 1024;

// The same dropout for sequence b of a pass whose sequences are computed one by one.
kernels::Dropout of_sequence(const kernels::Dropout& dropout, std::int64_t b);

struct Pass {
  std::int64_t batch = 1;           // B
  std::int64_t positions = 1;       // T
  std::int64_t first_position = 0;  // of tokens[:, 0]; with a cache, the positions already in it
  KeyValueCache* cache = nullptr;   // stores keys and values; null: attend within the batch
  // For sequences of different lengths, instead of `cache` and `first_position`: a cache each (B),
  // and the positions already in it (B).
  std::span<KeyValueCache* const> caches{};
  std::span<const std::int64_t> first_positions{};
  // Sequences of different lengths without a cache, one below the other: sequence b has the rows
  // [row_starts[b], row_starts[b + 1]) (B + 1). `positions` is then ragged_positions, and probes
  // see all rows as one sequence.
  std::span<const std::int64_t> row_starts{};
  // The length that the arithmetic of projections is chosen by, or kernels::decoding_step; 0:
  // `positions`. Steps of decoding say so: a prompt may have one token.
  std::int64_t projected_as = 0;
  // Tokens of the texts that the pass reads a part of, by which dynamic rotary scaling turns; a
  // text that ends behind them is as long as it is then. 0: all end with the pass.
  std::int64_t text_length = 0;
  // Of sequences that several processes share: the pass computes chunks of them, which PassRows
  // lays out, from `first_positions` on.
  KeyValueRing* ring = nullptr;
  const CrossMemory* memory = nullptr;  // of cross-attention
  // (N): which of the texts that a sequence joins each row is of, where the stack has embeddings of
  // them; empty: all of the first.
  std::span<const std::int32_t> token_types{};
  StackSite site = StackSite::only;
  DropoutPlan dropout{};
  Probe* probe = nullptr;
  Editor* editor = nullptr;
  std::int64_t first_sequence = 0;  // of a batch that is computed in parts

  // T of the sequences that rows are of.
  std::int64_t sequence_positions() const {
    return ring != nullptr ? ring->place().positions : positions;
  }
  std::int64_t projected_positions() const { return projected_as != 0 ? projected_as : positions; }
  bool is_ragged() const { return !row_starts.empty(); }
  // N = B·T, or the sum of the lengths
  std::int64_t rows() const { return is_ragged() ? row_starts.back() : batch * positions; }
  // As which views show the rows: (B, T), or (1, N).
  std::int64_t view_batch() const { return is_ragged() ? 1 : batch; }
  std::int64_t view_positions() const { return is_ragged() ? rows() : positions; }

  Point point(PointKind kind, std::int64_t layer) const { return {kind, layer, site}; }

  // Of row t of sequence b.
  std::int64_t position(std::int64_t b, std::int64_t t) const {
    return (first_positions.empty() ? first_position
                                    : first_positions[static_cast<std::size_t>(b)]) +
           t;
  }

  // Drops elements of rows (N, C), as their positions in the whole batch say. False: none are
  // dropped, and `out` is as it was. out may be x.
  bool drop(DropoutPoint point, std::int64_t layer, float rate, View<const float> x,
            View<float> out) const;

  // Values that are computed for a probe alone are computed only where it wants them.
  bool wants(PointKind kind, std::int64_t layer) const {
    return probe != nullptr && probe->wants({kind, layer, site});
  }
  bool edits(const Point& point) const { return editor != nullptr && editor->edits(point); }
  bool edits_head(const Point& point, std::int64_t head) const {
    return edits(point) && editor->edits_head(point, head);
  }
  EditedPoint edited_point(const Point& point) const {
    return {.point = point,
            .first_sequence = first_sequence,
            .first_position = first_position,
            .first_positions = first_positions};
  }
  void edit(const Point& point, View<float> values) const {
    if (edits(point)) editor->edit(edited_point(point), values);
  }

  // Edits `values`, then observes them; a null check if there are none.
  void visit(PointKind kind, std::int64_t layer, View<float> values) const {
    if (editor != nullptr || probe != nullptr) [[unlikely]] {
      edit({kind, layer, site}, values);
      observe(kind, layer, values);
    }
  }
  // The same for rows (N, width), as (B, T, width).
  void visit_rows(PointKind kind, std::int64_t layer, View<float> rows) const {
    if (editor != nullptr || probe != nullptr) [[unlikely]] {
      visit(kind, layer, rows.reshape({view_batch(), view_positions(), rows.extent(1)}));
    }
  }
  // Shows `values` to a probe that wants them; a null check if there is none.
  void observe(PointKind kind, std::int64_t layer, View<const float> values) const {
    if (probe != nullptr) [[unlikely]] {
      if (wants(kind, layer)) probe->observe({kind, layer, site}, values);
    }
  }

  void tick() const {
    if (probe != nullptr) [[unlikely]] {
      probe->tick();
    }
  }

  bool edits_gradient(PointKind kind, std::int64_t layer) const {
    return editor != nullptr && editor->edits_gradient({kind, layer, site});
  }
  // Edits a gradient in place, then shows it.
  void visit_gradient(PointKind kind, std::int64_t layer, View<float> values) const {
    if (edits_gradient(kind, layer)) [[unlikely]] {
      editor->edit_gradient({kind, layer, site}, values);
    }
    observe_gradient(kind, layer, values);
  }
  void visit_gradient_rows(PointKind kind, std::int64_t layer, View<float> rows) const {
    if (editor != nullptr || probe != nullptr) [[unlikely]] {
      visit_gradient(kind, layer, rows.reshape({view_batch(), view_positions(), rows.extent(1)}));
    }
  }
  // The same for gradients, which are shown only where the probe wants them.
  bool wants_gradient(PointKind kind, std::int64_t layer) const {
    return probe != nullptr && probe->wants_gradient({kind, layer, site});
  }
  void observe_gradient(PointKind kind, std::int64_t layer, View<const float> values) const {
    if (wants_gradient(kind, layer)) [[unlikely]] {
      probe->observe_gradient({kind, layer, site}, values);
    }
  }
  void observe_gradient_rows(PointKind kind, std::int64_t layer, View<const float> rows) const {
    if (wants_gradient(kind, layer)) [[unlikely]] {
      probe->observe_gradient({kind, layer, site},
                              rows.reshape({view_batch(), view_positions(), rows.extent(1)}));
    }
  }
};

}  // namespace heed
