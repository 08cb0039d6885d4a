// Detection of heads of the public facade.
#include "heed/detection.h"

#include <cmath>

#include "base/error.h"
#include "engine/activations.h"
#include "engine/facade.h"

namespace heed {
namespace {

// Sums over the elements of a pattern that count.
double similarity_of(const Array& pattern, const Array& wanted, std::int64_t count,
                     Similarity similarity, Excluded excluded) {
  const bool no_first = excluded == Excluded::first_key || excluded == Excluded::first_and_own_key;
  const bool no_own = excluded == Excluded::own_key || excluded == Excluded::first_and_own_key;
  double shared = 0, all = 0, differing = 0;
  for (std::int64_t t = 0; t < count; ++t) {
    for (std::int64_t s = 0; s <= t; ++s) {
      if ((no_first && s == 0) || (no_own && s == t)) continue;
      const auto at = static_cast<std::size_t>(t * count + s);
      shared += double{pattern[at]} * wanted[at];
      all += pattern[at];
      differing += std::abs(double{pattern[at]} - wanted[at]);
    }
  }
  if (similarity == Similarity::share) return all == 0 ? 0.0 : shared / all;
  return 1.0 - differing / static_cast<double>(count);
}

}  // namespace

Array detection_pattern(std::string_view name, std::span<const std::int32_t> tokens) {
  const bool previous = name == "previous_token_head", induction = name == "induction_head";
  require(
      previous || induction || name == "duplicate_token_head", ErrorCode::invalid_argument,
      "there is no detection pattern '{}': expected previous_token_head, duplicate_token_head or "
      "induction_head",
      name);
  const auto count = std::ssize(tokens);
  Tensor<float> pattern(Shape{count, count});
  const View<float> out = pattern;
  for (std::int64_t t = 1; t < count; ++t) {
    if (previous) out(t, t - 1) = 1.0F;
    for (std::int64_t s = 0; s < t && !previous; ++s) {
      if (tokens[static_cast<std::size_t>(s)] != tokens[static_cast<std::size_t>(t)]) continue;
      out(t, induction ? s + 1 : s) = 1.0F;
    }
  }
  return make_array(std::move(pattern));
}

Array detect_heads(const Activations& found, const Array& wanted, Similarity similarity,
                   Excluded excluded) {
  const std::int64_t count = found.positions();
  require(wanted.shape() == std::vector<std::int64_t>({count, count}), ErrorCode::invalid_argument,
          "a detection pattern has the shape ({}), expected ({}, {})",
          fmt::join(wanted.shape(), ", "), count, count);
  for (std::int64_t t = 0; t < count; ++t) {
    for (std::int64_t s = t + 1; s < count; ++s) {
      require(wanted[static_cast<std::size_t>(t * count + s)] == 0, ErrorCode::invalid_argument,
              "the detection pattern attends from position {} to the later position {}", t, s);
    }
  }
  const StackSpecification& config = activations_model(found).specification();
  Tensor<float> scores(Shape{config.layers, config.heads()});
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string name = fmt::format("blocks.{}.attn.hook_pattern", layer);
    for (std::int64_t head = 0; head < config.heads(); ++head) {
      const Array pattern = found.attention(
          name, {.sequences = {0}, .heads = {head}, .query_end = count, .key_end = count});
      scores.view()(layer, head) =
          static_cast<float>(similarity_of(pattern, wanted, count, similarity, excluded));
    }
  }
  return make_array(std::move(scores));
}

}  // namespace heed
