// The three kinds of attention of an encoder-decoder.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "model/architecture.h"
#include "model/probe.h"

namespace heed {

enum class PairAttentionKind {
  encoder,  // of the source to itself, in both directions
  decoder,  // of the target to itself, causal
  cross,    // of the target to the source
};
inline constexpr std::array<PairAttentionKind, 3> pair_attention_kinds{
    PairAttentionKind::encoder, PairAttentionKind::decoder, PairAttentionKind::cross};

std::string_view pair_attention_name(PairAttentionKind kind);  // "encoder", "decoder", "cross"
std::optional<PairAttentionKind> pair_attention_kind(std::string_view name);

// The point of the pattern; layer −1 stands for any.
Point pattern_point(PairAttentionKind kind, std::int64_t layer);

const StackSpecification& stack_of(const Architecture& architecture, PairAttentionKind kind);
const AttentionSpecification& attention_of(const Architecture& architecture,
                                           PairAttentionKind kind);

}  // namespace heed
