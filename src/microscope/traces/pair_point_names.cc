// Names of the points of an encoder-decoder.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/point_names.h"

namespace heed {
namespace {

constexpr std::string_view cross_prefix = "cross.";

// "pattern1" as "pattern" and "1".
struct NameAndLayer {
  std::string_view name;
  std::string_view layer;  // empty: every one

  explicit NameAndLayer(std::string_view text)
      : name(text.substr(0, text.find_last_not_of("0123456789") + 1)),
        layer(text.substr(name.size())) {}
  std::string layer_glob() const { return layer.empty() ? "*" : std::string(layer); }
};

// Short names of cross-attention: what follows "cross_attn." of its points.
std::string cross_glob(std::string_view text) {
  const NameAndLayer wanted(text);
  if (wanted.name == "out")
    return fmt::format("decoder.{}.hook_cross_attn_out", wanted.layer_glob());
  const std::string_view point = wanted.name == "attn" ? "pattern" : wanted.name;
  return fmt::format("decoder.{}.cross_attn.hook_{}", wanted.layer_glob(), point);
}

// Globs that a text may stand for, the most literal first.
std::vector<std::string> globs_of(std::string_view text) {
  std::vector<std::string> globs{std::string(text)};
  if (text.starts_with(cross_prefix)) {
    globs.push_back(cross_glob(text.substr(cross_prefix.size())));
    return globs;
  }
  for (const StackSite site : {StackSite::encoder, StackSite::decoder}) {
    const std::string_view prefix = site_prefix(site);
    if (!text.starts_with(prefix)) continue;
    const NameAndLayer wanted(text.substr(prefix.size()));
    const std::string layer = wanted.layer_glob();
    for (const char* const between : {"", "hook_", "attn.", "attn.hook_", "mlp.hook_"}) {
      globs.push_back(fmt::format("{}{}.{}{}", prefix, layer, between, wanted.name));
    }
    globs.push_back(fmt::format("{}hook_{}", prefix, wanted.name));
  }
  if (text == "logits") globs.emplace_back("unembed.hook_out");
  return globs;
}

}  // namespace

void require_point(const Architecture& architecture, const Point& point) {
  if (!architecture.is_encoder_decoder()) return require_point(architecture.decoder(), point);
  const std::string name = point_name(point);
  require(point.site != StackSite::only, ErrorCode::invalid_argument,
          "{} does not say which stack it belongs to: encoder.…, decoder.… or cross.…", name);
  const StackSpecification& stack = architecture.of(point.site);
  require(point.layer < stack.layers, ErrorCode::invalid_argument,
          "{} does not exist: the {} has layers 0 to {}", name,
          point.site == StackSite::encoder ? "encoder" : "decoder", stack.layers - 1);
  require(has_point(stack, point.kind), ErrorCode::unsupported, "this model has no {}", name);
}

std::vector<Point> points_named(std::string_view name, const Architecture& architecture) {
  if (!architecture.is_encoder_decoder()) return points_named(name, architecture.decoder());
  const std::vector<Point> every = all_points(architecture);
  for (const std::string& glob : globs_of(name)) {
    std::vector<Point> points;
    for (const Point& point : every) {
      if (matches_glob(point_name(point), glob)) points.push_back(point);
    }
    if (!points.empty()) return points;
  }
  std::vector<std::string> candidates;
  for (const Point& point : every) {
    if (point.layer <= 0) candidates.push_back(point_name(point));
  }
  for (const char* const known : {"encoder.pattern", "decoder.pattern", "cross.pattern",
                                  "encoder.resid_pre", "decoder.resid_pre", "cross.z", "cross.q"}) {
    candidates.emplace_back(known);
  }
  const std::vector<std::string> nearest = nearest_names(name, candidates, 3);
  fail(ErrorCode::invalid_argument,
       "this encoder-decoder has no point '{}'; did you mean '{}', '{}' or '{}'? (* stands for any "
       "part)",
       name.substr(0, 80), nearest.at(0), nearest.at(1), nearest.at(2));
}

}  // namespace heed
