// Two editors of one pass: the second changes what the first one left.
#pragma once

#include <optional>

#include "model/editor.h"

namespace heed {

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
  void begin_pass() override;
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
