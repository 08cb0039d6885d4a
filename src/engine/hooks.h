// Hooks of the public facade as an editor and a probe of passes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "heed/activations.h"
#include "model/editor.h"
#include "model/transformer.h"

namespace heed {

// Calls functions of the user at points of a pass, once for each point and pass, or text of it:
// with values in forward, with gradients in backward.
class HookEditor final : public Editor {
 public:
  // Throws Error{invalid_argument} for unknown names, and Error{unsupported} for points that the
  // model lacks.
  HookEditor(const Architecture& architecture, const std::vector<Hook>& hooks,
             const std::vector<Hook>& gradient_hooks = {},
             const std::vector<GradientTarget::PointWeights>& weights = {});

  bool empty() const { return hooks_.empty() && gradient_hooks_.empty() && weights_.empty(); }
  bool has_hooks() const { return !hooks_.empty(); }
  bool has_gradient_hooks() const { return !gradient_hooks_.empty() || !weights_.empty(); }
  bool edits(const Point& point) const override;
  // Values that hooks left as they were, or whose derivative a gradient hook there knows.
  bool only_adds(const Point& point) const override;
  bool edits_heads_together() const override { return true; }
  void edit(const EditedPoint& edited, View<float> values) override;
  bool edits_gradient(const Point& point) const override;
  void edit_gradient(const Point& point, View<float> gradient) override;

  // Gradients that are shown where they cannot be edited. Throws Error{unsupported} where a hook
  // changed one.
  bool reads_gradient(const Point& point) const;
  void show_gradient(const Point& point, View<const float> gradient);

  bool has_gradient_hook(const Point& point) const {
    return calls_at(gradient_calls_, point) != nullptr;
  }

  // For only_adds(): remembers which points hooks changed.
  void note_changes() { notes_changes_ = true; }
  // For passes whose backward goes on from whatever hooks leave: throws Error{unsupported}, out of
  // the pass, where one changes values that backward computes again.
  void refuse_unseen_changes() { notes_changes_ = refuses_unseen_ = true; }

  // Has the values of these points kept, as they are left, where hooks change them or, of patterns,
  // what they follow from.
  void keep(const std::vector<Point>& points);
  bool keeps(const Point& point) const;
  // Of the pass, or of each of its texts of different lengths; none where there are none.
  std::vector<Array> take(const Point& point);

  // Keeps the scores and patterns of a pass that hooks left, for those who ask for them head by
  // head, once the pass has ended too.
  void remember_planes() { remembers_planes_ = true; }

  // Has functions called for each of several texts of different lengths, with its (1, T, …), rather
  // than for all of their rows at once, (1, N, …).
  void call_by_text() { calls_by_text_ = true; }

  // Forgets the values of the last pass: points that a pass edits for several readers are edited
  // once in each.
  void begin_pass(StackSite site, const Sequences& sequences) override;

 private:
  using Calls = std::vector<const Hook*>;
  using CallsByPoint = std::map<std::string, Calls>;
  static CallsByPoint calls_of(const Architecture& architecture, const std::vector<Hook>& hooks);
  static const Calls* calls_at(const CallsByPoint& calls, const Point& point);
  static void call(const Calls& calls, const HookedPoint& point, Array& values);
  // Calls visit(text, its part of the rows): text by text, or once.
  template <class Visit>
  void for_each_text(const Sequences* sequences, const Point& point, View<float> rows,
                     const Visit& visit) const;
  void edit_text(const EditedPoint& edited, std::int64_t text, View<float> values);
  void read_weights(const Architecture& architecture,
                    const std::vector<GradientTarget::PointWeights>& weights);
  void add_weights(const std::string& point, std::int64_t text, Array& gradient) const;
  // What a gradient's rows are.
  const Sequences* rows_of(const Point& point) const;
  void note_change(const Point& point, View<const float> before, const Array& after);
  Array memory_for(const Shape& shape);
  void recycle(Array values);

  std::vector<Hook> hooks_;
  std::vector<Hook> gradient_hooks_;
  CallsByPoint calls_;  // by the point's name
  CallsByPoint gradient_calls_;
  std::map<std::string, Array> weights_;  // of what is differentiated, by the point's name
  bool notes_changes_ = false;
  bool refuses_unseen_ = false;
  bool remembers_planes_ = false;
  bool calls_by_text_ = false;
  std::map<StackSite, Sequences> rows_;  // of the pass
  std::set<std::string> changed_;        // points whose values hooks changed
  std::vector<Point> kept_points_;
  // By the point's name and text, of this pass.
  using ByText = std::map<std::pair<std::string, std::int64_t>, Array>;
  ByText left_;
  ByText kept_;
  std::vector<Array> spare_;
};

// Polls at the points of a pass, tells the editor (or null) of gradients that it cannot edit, and
// passes all on to another probe (or null).
class HookProbe final : public Probe {
 public:
  HookProbe(HookEditor* editor, const std::function<void()>& poll, Probe* next = nullptr)
      : editor_(editor), poll_(poll), next_(next) {}

  void tick() override {
    if (poll_) poll_();
  }
  void begin_pass(StackSite site, const Sequences& sequences) override {
    if (next_ != nullptr) next_->begin_pass(site, sequences);
  }
  bool wants(const Point& point) const override { return next_ != nullptr && next_->wants(point); }
  void observe(const Point& point, View<const float> values) override;
  bool wants_attention_at(const Point& pattern) const override {
    return next_ != nullptr && next_->wants_attention_at(pattern);
  }
  void observe_attention_at(const Point& pattern, const kernels::AttentionInput<float>& input,
                            View<const float> log_sum_exp, std::int64_t text) override;
  bool wants_gradient(const Point& point) const override;
  void observe_gradient(const Point& point, View<const float> values) override;

 private:
  HookEditor* editor_;
  const std::function<void()>& poll_;
  Probe* next_;
};

// A dense array of a view's elements, and the reverse, into a view of the array's shape.
Array dense_copy(View<const float> values);
void copy_dense(const Array& from, View<float> values);

}  // namespace heed
