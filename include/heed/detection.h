// How much the pattern of every head looks like another pattern (TransformerLens: detect_head).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "heed/activations.h"

namespace heed {

// (T, T) of zeros and ones: to the token before; to earlier copies of the token; to the tokens
// after those copies. Throws Error{invalid_argument} for an unknown name: "previous_token_head",
// "duplicate_token_head", "induction_head".
Array detection_pattern(std::string_view name, std::span<const std::int32_t> tokens);

enum class Similarity {
  share,     // Σ pattern · wanted / Σ pattern ("mul")
  distance,  // 1 − mean over queries of Σ |pattern − wanted| ("abs")
};
enum class Excluded { nothing, first_key, own_key, first_and_own_key };

// (L, H) of the first sequence. Throws Error{invalid_argument} for a wanted pattern that is not
// (T, T) or not zero above its diagonal.
Array detect_heads(const Activations& found, const Array& wanted, Similarity similarity,
                   Excluded excluded = Excluded::nothing);

}  // namespace heed
