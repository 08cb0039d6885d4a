// A probe that keeps copies of points and gradients, and attention so that any of its tiles can be
// computed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/hooks.h"
#include "heed/array.h"
#include "microscope/attention/lazy_attention.h"
#include "model/gpt.h"

namespace heed {

class PointKeeper final : public Probe {
 public:
  struct Request {
    std::vector<Point> points{};
    std::vector<Point> gradients{};
    std::int64_t batch = 1;
    std::int64_t positions = 1;
  };

  // `editor` (or null) keeps the points that it changes, `gradient_hooks` (or null) are called.
  PointKeeper(const StackSpecification& stack, Request request, HookEditor* editor,
              const GradientHooks* gradient_hooks);

  bool wants(const Point& point) const override;
  void observe(const Point& point, View<const float> values) override;
  bool wants_attention(std::int64_t layer) const override;
  void observe_attention(std::int64_t layer, const kernels::AttentionInput<float>& input,
                         View<const float> log_sum_exp) override;
  bool wants_gradient(const Point& point) const override;
  void observe_gradient(const Point& point, View<const float> values) override;

  // By full name, after the pass.
  std::map<std::string, Array> take();
  std::optional<LazyAttention> take_attention() { return std::move(attention_); }

 private:
  bool is_lazy(const Point& point) const;

  Request request_;
  HookEditor* editor_;
  const GradientHooks* gradient_hooks_;
  std::optional<LazyAttention> attention_;
  std::map<std::string, Array> kept_;
};

}  // namespace heed
