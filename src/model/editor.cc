#include "model/editor.h"

#include <algorithm>

namespace heed {
namespace {

// Planes of all heads (B, H, T, S) go to an editor of single heads one by one.
void edit_with(Editor& editor, const EditedPoint& edited, View<float> values) {
  if (!editor.edits(edited.point)) return;
  const bool of_all_heads = is_plane(edited.point.kind) && edited.head < 0;
  if (!of_all_heads || editor.edits_heads_together()) return editor.edit(edited, values);
  for (std::int64_t b = 0; b < values.extent(0); ++b) {
    for (std::int64_t head = 0; head < values.extent(1); ++head) {
      if (!editor.edits_head(edited.point, head)) continue;
      EditedPoint of_head = edited;
      of_head.first_sequence += b;
      of_head.head = head;
      const View<float> plane = values[b][head];
      editor.edit(of_head, plane.reshape({1, 1, plane.extent(0), plane.extent(1)}));
    }
  }
}

bool keeps_gradient(const Editor& editor, const Point& point) {
  return !editor.edits(point) || editor.only_adds(point);
}

}  // namespace

bool JoinedEditor::edits_head(const Point& point, std::int64_t head) const {
  const auto edits = [&](const Editor& editor) {
    return editor.edits(point) && editor.edits_head(point, head);
  };
  return edits(first_) || edits(second_);
}

bool JoinedEditor::only_adds(const Point& point) const {
  return keeps_gradient(first_, point) && keeps_gradient(second_, point);
}

void JoinedEditor::begin_pass(StackSite site, const Sequences& sequences) {
  first_.begin_pass(site, sequences);
  second_.begin_pass(site, sequences);
}

void JoinedEditor::edit(const EditedPoint& edited, View<float> values) {
  edit_with(first_, edited, values);
  edit_with(second_, edited, values);
}

void JoinedEditor::edit_gradient(const Point& point, View<float> gradient) {
  if (second_.edits_gradient(point)) second_.edit_gradient(point, gradient);
  if (first_.edits_gradient(point)) first_.edit_gradient(point, gradient);
}

bool EditorOfEach::edits(const Point& point) const {
  return std::ranges::any_of(editors_, [&](Editor* each) { return each->edits(point); });
}

bool EditorOfEach::edits_head(const Point& point, std::int64_t head) const {
  return std::ranges::any_of(
      editors_, [&](Editor* each) { return each->edits(point) && each->edits_head(point, head); });
}

void EditorOfEach::edit(const EditedPoint& edited, View<float> values) {
  for (std::int64_t b = 0; b < values.extent(0); ++b) {
    EditedPoint of_sequence = edited;
    of_sequence.first_sequence += b;
    Editor& editor = *editors_.at(static_cast<std::size_t>(of_sequence.first_sequence));
    edit_with(editor, of_sequence, values.slice(0, b, b + 1));
  }
}

EditorOfPass::EditorOfPass(Editor* model, Editor* given)
    : editor_(model != nullptr ? model : given) {
  if (model == nullptr || given == nullptr) return;
  editor_ = given->includes(*model) ? given : &joined_.emplace(*model, *given);
}

}  // namespace heed
