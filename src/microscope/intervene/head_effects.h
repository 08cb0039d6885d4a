// What a head does to the next token, measured by switching it off.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/progress.h"
#include "microscope/intervene/answer_probability.h"
#include "model/transformer.h"

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
// Error{invalid_argument} for a text that does not fit the model, and Error{interrupted} when
// stopped.
std::vector<HeadEffect> head_effects(const Transformer& gpt, std::span<const std::int32_t> tokens,
                                     std::span<const HeadName> heads, StopFlag stop = nullptr);

// The heads with the largest weights of one query, up to `most` of them, the largest first. Weights
// on its own tokens, [own_begin, position], on the first and on the previous token do not count.
std::vector<HeadName> selective_heads(const StackSpecification& config, const QueryRows& rows,
                                      std::int64_t position, std::int64_t own_begin,
                                      std::size_t most);

// The head to show for a word: of the heads that are most selective at its last token, `position`,
// the one with the largest effect on the token after it. [own_begin, position] are the word's
// tokens. Throws as head_effects().
struct HeadChoiceByEffect {
  HeadEffect effect;
  std::size_t tried = 0;  // heads, 24 at most
};
HeadChoiceByEffect head_to_show(const Transformer& gpt, std::span<const std::int32_t> tokens,
                                std::int64_t position, std::int64_t own_begin,
                                StopFlag stop = nullptr);

}  // namespace heed
