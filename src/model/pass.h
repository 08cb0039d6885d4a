// Parameters of one pass through the model, shared by its stages.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/operands.h"
#include "model/editor.h"
#include "model/here.h"
#include "model/key_value_ring.h"
#include "model/probe.h"
#include "model/sequences.h"

namespace heed {

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
  View<const float> rows;  // (M, C)
  // The texts that the rows are of. Where they have caches, these hold their keys and values,
  // projected once, and rows are absent.
  Sequences texts;
  // (B): the source that a sequence attends to, those of one source side by side; empty: its own.
  std::span<const std::int64_t> sources{};

  std::int64_t source(std::int64_t b) const {
    return sources.empty() ? b : sources[static_cast<std::size_t>(b)];
  }
};

// The length of a pass of sequences of different lengths, as far as the arithmetic of its rows is
// chosen by it: which one a row gets never depends on the sequences beside it.
inline constexpr std::int64_t ragged_positions = 1024;

// The same dropout for sequence b of a pass whose sequences are computed one by one.
kernels::Dropout of_sequence(const kernels::Dropout& dropout, std::int64_t b);

// What backward takes for constants, as if what computed it had no derivative: gradients are then
// those of a function that is linear between the neurons, so that value times gradient adds up to
// what the values contribute (Ameisen et al. 2025).
struct FrozenParts {
  bool pattern = false;  // of every attention: its queries and keys get no gradient
  bool scale = false;    // the deviation that a norm divides by
};

// Blocks [begin, end) of a stack; −1: to its end.
struct LayerRange {
  std::int64_t begin = 0;
  std::int64_t end = -1;

  bool is_whole() const { return begin == 0 && end < 0; }
  bool has_end(std::int64_t layers) const { return end < 0 || end == layers; }
  std::int64_t end_of(std::int64_t layers) const { return end < 0 ? layers : end; }
};

struct Pass {
  Sequences sequences{};  // what its rows are
  // The length by which the arithmetic of a row is chosen, or kernels::decoding_step; 0: that of
  // the sequences. Steps of decoding say so: a prompt may have one token.
  std::int64_t length = 0;
  // Tokens of the texts that the pass reads a part of, by which dynamic rotary scaling turns; a
  // text that ends after them is as long as it is then. 0: all end with the pass.
  std::int64_t text_length = 0;
  // So many repetitions of a recorded pass, each a position further, find their rotary angles.
  std::int64_t repetitions = 1;
  // Of sequences that several processes share: the pass computes chunks of them, which PassRows
  // lays out.
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
  FrozenParts frozen{};             // in backward
  // The blocks that are computed: without the last one, neither the final norm nor what follows.
  LayerRange layers{};
  View<const float> stream{};  // (N, C): what the first of them reads, where no embedding is

  // T of the sequences that the rows are of; 0 where lengths may differ.
  std::int64_t sequence_positions() const {
    return ring != nullptr ? ring->place().positions : sequences.length();
  }
  std::int64_t arithmetic_length() const {
    if (length != 0) return length;
    return sequences.is_ragged() ? ragged_positions : sequence_positions();
  }
  std::int64_t rows() const { return sequences.rows(); }  // N
  std::int64_t view_batch() const { return sequences.view_batch(); }
  std::int64_t view_positions() const { return sequences.view_positions(); }
  // A row for each of the pass, as probes and editors see them.
  View<float> as_view(View<float> rows) const {
    return rows.reshape({view_batch(), view_positions(), rows.extent(1)});
  }
  View<const float> as_view(View<const float> rows) const {
    return rows.reshape({view_batch(), view_positions(), rows.extent(1)});
  }

  Point point(PointKind kind, std::int64_t layer) const { return {kind, layer, site}; }

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
    return {.point = point, .sequences = &sequences, .first_sequence = first_sequence};
  }
  // Editors and probes get values of the processor: those of an accelerator are copied.
  void edit(const Point& point, View<float> values) const {
    if (!edits(point)) return;
    const HereAndBack here(values);
    editor->edit(edited_point(point), here.values());
    here.finish();
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
      visit(kind, layer, as_view(rows));
    }
  }
  // Shows `values` to a probe that wants them; a null check if there is none.
  void observe(PointKind kind, std::int64_t layer, View<const float> values) const {
    if (probe != nullptr) [[unlikely]] {
      if (wants(kind, layer)) probe->observe({kind, layer, site}, Here(values).values());
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
      const HereAndBack here(values);
      editor->edit_gradient({kind, layer, site}, here.values());
      here.finish();
    }
    observe_gradient(kind, layer, values);
  }
  void visit_gradient_rows(PointKind kind, std::int64_t layer, View<float> rows) const {
    if (editor != nullptr || probe != nullptr) [[unlikely]] {
      visit_gradient(kind, layer, as_view(rows));
    }
  }
  // The same for gradients, which are shown only where the probe wants them.
  bool wants_gradient(PointKind kind, std::int64_t layer) const {
    return probe != nullptr && probe->wants_gradient({kind, layer, site});
  }
  void observe_gradient(PointKind kind, std::int64_t layer, View<const float> values) const {
    if (wants_gradient(kind, layer)) [[unlikely]] {
      probe->observe_gradient({kind, layer, site}, Here(values).values());
    }
  }
  void observe_gradient_rows(PointKind kind, std::int64_t layer, View<const float> rows) const {
    if (wants_gradient(kind, layer)) [[unlikely]] {
      probe->observe_gradient({kind, layer, site}, as_view(Here(rows).values()));
    }
  }
};

}  // namespace heed
