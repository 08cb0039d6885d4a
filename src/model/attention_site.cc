#include "model/attention_site.h"

#include <array>

namespace heed {
namespace {

constexpr std::array one_site{only_site};
constexpr std::array three_sites{encoder_site, decoder_site, cross_site};

}  // namespace

std::span<const AttentionSite> sites_of(const Architecture& architecture) {
  if (architecture.is_encoder_decoder()) return three_sites;
  return one_site;
}

std::string_view site_name(AttentionSite site) {
  if (site.kind == AttentionKind::cross) return "cross";
  switch (site.stack) {
    case StackSite::encoder: return "encoder";
    case StackSite::decoder: return "decoder";
    case StackSite::only: break;
  }
  return "self";
}

std::optional<AttentionSite> site_named(std::string_view name, const Architecture& architecture) {
  for (const AttentionSite site : sites_of(architecture)) {
    if (site_name(site) == name) return site;
  }
  return std::nullopt;
}

Point pattern_point(AttentionSite site, std::int64_t layer) {
  const bool is_cross = site.kind == AttentionKind::cross;
  return {is_cross ? PointKind::cross_pattern : PointKind::pattern, layer, site.stack};
}

AttentionSite site_of_pattern(const Point& pattern) {
  const bool is_cross = pattern.kind == PointKind::cross_pattern;
  return {pattern.site, is_cross ? AttentionKind::cross : AttentionKind::self};
}

const AttentionSpecification& attention_of(const Architecture& architecture, AttentionSite site) {
  const BlockSpecification& block = architecture.of(site.stack).block;
  return site.kind == AttentionKind::cross ? *block.cross_attention : block.attention;
}

}  // namespace heed
