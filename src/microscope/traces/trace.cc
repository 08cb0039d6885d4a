#include "microscope/traces/trace.h"

#include "microscope/traces/text_pass.h"

namespace heed {
namespace {

class PatternVisitor final : public Probe {
 public:
  using Visit = std::function<void(std::int64_t layer, View<const float>)>;

  explicit PatternVisitor(const Visit& visit) : visit_(visit) {}

  bool wants(const Site& site) const override { return site.point == Point::pattern; }
  void observe(const Site& site, View<const float> values) override {
    if (wants(site)) visit_(site.layer, values[0]);
  }

 private:
  const Visit& visit_;
};

}  // namespace

Capture trace(const Gpt& gpt, std::span<const std::int32_t> tokens, std::vector<Site> sites) {
  Capture capture(std::move(sites));
  run_text(gpt, tokens, capture);
  return capture;
}

void visit_patterns(const Gpt& gpt, std::span<const std::int32_t> tokens,
                    const std::function<void(std::int64_t layer, View<const float>)>& visit) {
  PatternVisitor visitor(visit);
  run_text(gpt, tokens, visitor);
}

Capture trace_patterns(const Gpt& gpt, std::span<const std::int32_t> tokens) {
  std::vector<Site> sites;
  for (std::int64_t layer = 0; layer < gpt.config().layers; ++layer) {
    sites.push_back({Point::pattern, layer});
  }
  return trace(gpt, tokens, std::move(sites));
}

}  // namespace heed
