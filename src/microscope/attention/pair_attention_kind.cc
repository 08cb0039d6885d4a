#include "microscope/attention/pair_attention_kind.h"

namespace heed {

std::string_view pair_attention_name(PairAttentionKind kind) {
  switch (kind) {
    case PairAttentionKind::encoder: return "encoder";
    case PairAttentionKind::decoder: return "decoder";
    case PairAttentionKind::cross: break;
  }
  return "cross";
}

std::optional<PairAttentionKind> pair_attention_kind(std::string_view name) {
  for (const PairAttentionKind kind : pair_attention_kinds) {
    if (pair_attention_name(kind) == name) return kind;
  }
  return std::nullopt;
}

Point pattern_point(PairAttentionKind kind, std::int64_t layer) {
  const bool is_cross = kind == PairAttentionKind::cross;
  return {is_cross ? PointKind::cross_pattern : PointKind::pattern, layer,
          kind == PairAttentionKind::encoder ? StackSite::encoder : StackSite::decoder};
}

const StackSpecification& stack_of(const Architecture& architecture, PairAttentionKind kind) {
  return kind == PairAttentionKind::encoder ? architecture.encoder() : architecture.decoder();
}

const AttentionSpecification& attention_of(const Architecture& architecture,
                                           PairAttentionKind kind) {
  const BlockSpecification& block = stack_of(architecture, kind).block;
  return kind == PairAttentionKind::cross ? *block.cross_attention : block.attention;
}

}  // namespace heed
