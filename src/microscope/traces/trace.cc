#include "microscope/traces/trace.h"

#include "microscope/traces/text_pass.h"

namespace heed {
namespace {

class PatternVisitor final : public Probe {
 public:
  using Visit = std::function<void(std::int64_t layer, View<const float>)>;

  explicit PatternVisitor(const Visit& visit) : visit_(visit) {}

  bool wants(const Point& point) const override { return point.kind == PointKind::pattern; }
  void observe(const Point& point, View<const float> values) override {
    if (wants(point)) visit_(point.layer, values[0]);
  }

 private:
  const Visit& visit_;
};

}  // namespace

Capture trace(const Transformer& gpt, std::span<const std::int32_t> tokens,
              std::vector<Point> points) {
  Capture capture(std::move(points));
  run_text(gpt, tokens, capture);
  return capture;
}

void visit_patterns(const Transformer& gpt, std::span<const std::int32_t> tokens,
                    const std::function<void(std::int64_t layer, View<const float>)>& visit) {
  PatternVisitor visitor(visit);
  run_text(gpt, tokens, visitor);
}

Capture trace_patterns(const Transformer& gpt, std::span<const std::int32_t> tokens) {
  std::vector<Point> points;
  for (std::int64_t layer = 0; layer < gpt.specification().layers; ++layer) {
    points.push_back({PointKind::pattern, layer});
  }
  return trace(gpt, tokens, std::move(points));
}

}  // namespace heed
