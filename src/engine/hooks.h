// Hooks of the public facade as an editor and a probe of passes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "heed/activations.h"
#include "model/editor.h"
#include "model/gpt.h"

namespace heed {

// Calls functions of the user at points of a pass, once for each point and pass.
class HookEditor final : public Editor {
 public:
  // Throws Error{invalid_argument} for unknown names, and Error{unsupported} for points that the
  // model lacks.
  HookEditor(const StackSpecification& stack, const std::vector<Hook>& hooks);

  bool empty() const { return hooks_.empty(); }
  bool edits(const Point& point) const override;
  bool edits_heads_together() const override { return true; }
  void edit(const EditedPoint& edited, View<float> values) override;

  // Has the values of these points kept, as they are left, where hooks change them or, of patterns,
  // what they follow from.
  void keep(const std::vector<Point>& points);
  bool keeps(const Point& point) const;
  std::optional<Array> take(const Point& point);

  // Forgets the values of the last pass: points that a pass edits for several readers are edited
  // once in each.
  void begin_pass() { left_.clear(); }

 private:
  using Calls = std::vector<const Hook*>;
  const Calls* calls_at(const Point& point) const;
  Array memory_for(const Shape& shape);
  void recycle(Array values);

  std::vector<Hook> hooks_;
  std::map<std::string, Calls> calls_;  // by the point's name
  std::vector<Point> kept_points_;
  std::map<std::string, Array> left_;  // by the point's name, of this pass
  std::map<std::string, Array> kept_;
  std::vector<Array> spare_;
};

// Calls hooks with the gradients at their points.
class GradientHooks {
 public:
  GradientHooks(const StackSpecification& stack, const std::vector<Hook>& hooks);
  bool wants(const Point& point) const;
  bool empty() const { return hooks_.empty(); }
  void call(const Point& point, View<const float> gradient) const;

 private:
  std::vector<Hook> hooks_;
  std::vector<std::vector<Point>> points_;  // of each hook
};

// Polls at the points of a pass, tells the editor (or null) where one begins, and passes all on to
// another probe (or null).
class HookProbe final : public Probe {
 public:
  HookProbe(HookEditor* editor, const std::function<void()>& poll, Probe* next = nullptr)
      : editor_(editor), poll_(poll), next_(next) {}

  bool wants(const Point& point) const override { return next_ != nullptr && next_->wants(point); }
  void observe(const Point& point, View<const float> values) override;
  bool wants_attention_at(const Point& pattern) const override {
    return next_ != nullptr && next_->wants_attention_at(pattern);
  }
  void observe_attention_at(const Point& pattern, const kernels::AttentionInput<float>& input,
                            View<const float> log_sum_exp) override;
  bool wants_gradient(const Point& point) const override;
  void observe_gradient(const Point& point, View<const float> values) override;

 private:
  HookEditor* editor_;
  const std::function<void()>& poll_;
  Probe* next_;
};

// A dense array of a view's elements.
Array dense_copy(View<const float> values);

}  // namespace heed
