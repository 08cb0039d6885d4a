// What a head does to the next token, measured by switching it off.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "microscope/attention/head_statistics.h"
#include "model/gpt.h"

namespace heed {

struct HeadEffect {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  // Total variation distance between the distributions of the next token with and without the head,
  // ½ Σ |p − p′|: 0 changes nothing, 1 everything.
  double moved = 0;
  std::int32_t token = 0;  // the one that loses most
  double before = 0;       // its probability with the head
  double after = 0;        // and without it
};

// The effect of each of `heads` (its mixed values become zero at every position) on the token after
// `tokens`, the largest first. Takes one pass for each head, and one. Throws
// Error{invalid_argument} for a text that does not fit the model.
std::vector<HeadEffect> head_effects(const Gpt& gpt, std::span<const std::int32_t> tokens,
                                     std::span<const RankedHead> heads);

// The head to show for a word: of the 24 heads that are most selective at its last token,
// `position`, the one with the largest effect on the token after it. patterns[layer] is (H, T, T);
// [own_begin, position] are the word's tokens.
HeadEffect head_to_show(const Gpt& gpt, std::span<const std::int32_t> tokens,
                        const std::vector<View<const float>>& patterns, std::int64_t position,
                        std::int64_t own_begin);

}  // namespace heed
