// An editor changes the values of a pass at a point, before the point is observed and before
// anything downstream uses it, like a hook of TransformerLens that returns a replacement.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/probe.h"
#include "model/sequences.h"

namespace heed {

// A point that is being edited, and the part of it that an editor is given.
struct EditedPoint {
  Point point;
  const Sequences* sequences = nullptr;  // of the pass; null: one, from position 0 on
  std::int64_t first_sequence = 0;       // of the pass: values[0]
  std::int64_t head = -1;                // of scores and pattern, one head at a time
  // Of scores: what they are computed from, for a batch that begins at sequence attention_begin.
  const kernels::AttentionInput<float>* attention = nullptr;
  std::int64_t attention_begin = 0;

  std::int64_t attention_sequence() const { return first_sequence - attention_begin; }

  // Positions of the longest text whose values are given, of `rows` of them.
  std::int64_t longest(std::int64_t rows) const {
    const bool of_all = sequences != nullptr && sequences->is_ragged() && !is_plane(point.kind);
    return of_all ? sequences->positions_end() : rows;
  }

  // Position of values[b, t] in its sequence; for scores and pattern, of query t.
  std::int64_t position(std::int64_t b, std::int64_t t) const {
    if (sequences == nullptr) return t;
    // Scores and patterns are those of whole sequences, also where other values are all rows.
    if (sequences->is_ragged() && !is_plane(point.kind)) return sequences->position_of_row(t);
    return (*sequences)[first_sequence + b].first_position + t;
  }
};

// An edit depends on point and position only. An editor may be given the same values twice: once
// for the pass, and again for a probe of a point that the pass does not keep.
class Editor {
 public:
  virtual ~Editor() = default;

  // Asked at every point of every pass. Logits cannot be edited: forward refuses an editor that
  // would.
  virtual bool edits(const Point& point) const = 0;

  // Asked where edits() is true, at scores and pattern and at the inputs of heads: only these heads
  // are computed apart from the fused kernels.
  virtual bool edits_head(const Point& point, std::int64_t head) const {
    static_cast<void>(head);
    return edits(point);
  }

  // Whether it is given the scores and patterns of all heads at once, (B, H, T, S), instead of
  // those of one head of one sequence at a time.
  virtual bool edits_heads_together() const { return false; }

  // Whether the edit only adds numbers that do not depend on the pass, so that the gradient before
  // the edit equals the gradient after it.
  virtual bool only_adds(const Point& point) const {
    static_cast<void>(point);
    return false;
  }

  // Called before the first point of every pass of a stack, with what its rows are.
  virtual void begin_pass(StackSite, const Sequences&) {}

  // Whether it is this editor, or calls it.
  virtual bool includes(const Editor& editor) const { return &editor == this; }

  // Changes `values` in place. They are shaped as listed at PointKind and may be strided. Scores
  // and pattern come one head of one sequence at a time, (1, 1, T, S). Scores are edited first,
  // then the pattern computed from them; rows of an edited pattern need not sum to one.
  virtual void edit(const EditedPoint& edited, View<float> values) = 0;

  // In backward, where gradient_is_editable(): whether edit_gradient() changes the gradient at a
  // point in place, before it is observed and before what was computed before the point gets it.
  virtual bool edits_gradient(const Point& point) const {
    static_cast<void>(point);
    return false;
  }
  virtual void edit_gradient(const Point& point, View<float> gradient) {
    static_cast<void>(point);
    static_cast<void>(gradient);
  }
};

// Whether backward goes on with the gradient at a point as an editor leaves it. The gradients at
// norms, scores, patterns, results of heads, embeddings and logits are computed for a probe alone.
bool gradient_is_editable(PointKind kind);
// Whether backward goes on from the values that an editor left at a point, as if the edit had added
// a constant. It computes norms, patterns and the results of heads again, without edits.
bool backward_sees_edit(PointKind kind);

// Two editors of one pass: the second changes what the first one left.

class JoinedEditor : public Editor {
 public:
  // Borrows both.
  JoinedEditor(Editor& first, Editor& second) : first_(first), second_(second) {}

  bool edits(const Point& point) const override {
    return first_.edits(point) || second_.edits(point);
  }
  bool edits_head(const Point& point, std::int64_t head) const override;
  bool edits_heads_together() const override {
    return first_.edits_heads_together() || second_.edits_heads_together();
  }
  bool only_adds(const Point& point) const override;
  void begin_pass(StackSite site, const Sequences& sequences) override;
  void edit(const EditedPoint& edited, View<float> values) override;
  bool edits_gradient(const Point& point) const override {
    return first_.edits_gradient(point) || second_.edits_gradient(point);
  }
  // In the reverse order.
  void edit_gradient(const Point& point, View<float> gradient) override;
  bool includes(const Editor& editor) const override {
    return &editor == this || first_.includes(editor) || second_.includes(editor);
  }

 private:
  Editor& first_;
  Editor& second_;
};

// Edits each sequence of a pass, of one length, by an editor of its own. Scores and patterns that
// one of them edits are computed apart from the fused kernels in all sequences.
class EditorOfEach final : public Editor {
 public:
  explicit EditorOfEach(std::vector<Editor*> editors) : editors_(std::move(editors)) {}  // borrowed

  bool edits(const Point& point) const override;
  bool edits_head(const Point& point, std::int64_t head) const override;
  void edit(const EditedPoint& edited, View<float> values) override;

 private:
  std::vector<Editor*> editors_;  // by sequence
};

// What edits a pass of a model with an editor of its own (or null) that is given another one (or
// null): neither, one, or both joined, the model's first.
class EditorOfPass {
 public:
  EditorOfPass(Editor* model, Editor* given);
  EditorOfPass(const EditorOfPass&) = delete;
  EditorOfPass& operator=(const EditorOfPass&) = delete;

  Editor* get() const { return editor_; }

 private:
  std::optional<JoinedEditor> joined_;
  Editor* editor_;
};

}  // namespace heed
