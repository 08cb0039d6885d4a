// A probe that keeps copies of points and gradients, and attention so that any of its tiles can be
// computed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/hooks.h"
#include "heed/array.h"
#include "microscope/attention/lazy_attention.h"
#include "microscope/traces/point_names.h"
#include "model/architecture.h"

namespace heed {

// The one of `readers` that recorded what scores or a pattern follow from, or null.
const LazyAttention* attention_reader(const std::vector<LazyAttention>& readers,
                                      const Point& plane);

class PointKeeper final : public Probe {
 public:
  struct Request {
    std::vector<Point> points{};
    std::vector<Point> gradients{};
    std::int64_t batch = 1;
    std::int64_t positions = 1;            // of the decoder, where there are two stacks
    std::int64_t sources = 0;              // positions of the encoder
    const Editor* model_editor = nullptr;  // that changes all passes of the model, or null
  };

  // `editor` (or null) keeps the points that it changes.
  PointKeeper(const Architecture& architecture, Request request, HookEditor* editor);

  void begin_pass(StackSite site, const Sequences& sequences) override {
    rows_.insert_or_assign(site, sequences);
  }
  bool wants(const Point& point) const override;
  void observe(const Point& point, View<const float> values) override;
  bool wants_attention_at(const Point& pattern) const override;
  void observe_attention_at(const Point& pattern, const kernels::AttentionInput<float>& input,
                            View<const float> log_sum_exp, std::int64_t text) override;
  bool wants_gradient(const Point& point) const override;
  void observe_gradient(const Point& point, View<const float> values) override;

  // By full name, after the pass.
  std::map<std::string, Array> take();
  std::vector<LazyAttention> take_attention() { return std::move(attention_); }

 private:
  bool is_lazy(const Point& point) const;
  void add_reader(const Architecture& architecture, AttentionSite kind);
  std::vector<std::int64_t> lazy_layers(const Point& pattern) const;

  Array by_text(const Point& point, View<const float> values) const;
  Array by_text(const Point& point, std::vector<Array> texts) const;
  const Sequences& rows_of(const Point& point) const {
    return rows_.at(has_source_rows(point) ? StackSite::encoder : point.site);
  }

  Request request_;
  HookEditor* editor_;
  std::map<StackSite, Sequences> rows_;  // of the pass
  std::vector<LazyAttention> attention_;
  std::map<std::string, Array> kept_;
};

}  // namespace heed
