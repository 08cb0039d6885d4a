#include "generate/token_scores.h"

#include <algorithm>
#include <numeric>

#include "base/threads.h"
#include "kernels/kernels.h"
#include "model/input_checks.h"

namespace heed {
namespace {

constexpr std::int64_t row_multiple = 64;   // whole tiles of all matrix product kernels
constexpr std::int64_t rows_at_once = 128;  // of logits, which are never stored for a whole text

// The least multiple above the number of rows that use another kernel.
std::int64_t round_up(std::int64_t rows) {
  return std::max<std::int64_t>((rows + row_multiple - 1) / row_multiple, 2) * row_multiple;
}

// From the loss of `token`, which determines the log-sum-exp of all logits.
TokenScore score_row(std::span<const float> logits, std::int32_t token, float loss,
                     std::int64_t count) {
  const double sum = static_cast<double>(logits[static_cast<std::size_t>(token)]) + loss;
  std::vector<std::int32_t> ids(count > 0 ? logits.size() : 0);
  std::iota(ids.begin(), ids.end(), 0);
  const std::int64_t n_best = std::clamp<std::int64_t>(count, 0, std::ssize(ids));
  std::partial_sort(ids.begin(), ids.begin() + n_best, ids.end(),
                    [&](std::int32_t a, std::int32_t b) {
                      const float left = logits[static_cast<std::size_t>(a)];
                      const float right = logits[static_cast<std::size_t>(b)];
                      return left > right || (left == right && a < b);
                    });

  TokenScore score{.token = {token, -loss}, .likeliest = {}};
  for (const std::int32_t id : std::span(ids).first(static_cast<std::size_t>(n_best))) {
    score.likeliest.push_back({id, static_cast<float>(logits[static_cast<std::size_t>(id)] - sum)});
  }
  return score;
}

}  // namespace

TokenScore score_token(std::span<const float> logits, std::int32_t token, std::int64_t count) {
  float loss = 0;
  kernels::cross_entropy_forward(View<const float>(logits.data(), {1, std::ssize(logits)}),
                                 View<const std::int32_t>(&token, {1}), View<float>(&loss, {1}));
  return score_row(logits, token, loss, count);
}

ScoringShape scoring_shape(std::int64_t length, std::int64_t context) {
  const std::int64_t positions = std::max(length, std::min(round_up(length), context));
  return {.batch = (2 * row_multiple + positions - 1) / positions, .positions = positions};
}

ScoredText score_text(const Transformer& model, std::span<const std::int32_t> tokens,
                      std::int64_t count) {
  require_predicts_next(model.specification(), "scoring a text");
  const std::int64_t length = std::ssize(tokens);
  require_text_fits(model.specification(), tokens);
  // 1: one pass over the text and what fills it up, which changes nothing before it
  const auto [batch, positions] = scoring_shape(length, model.specification().context);
  Tensor<std::int32_t> padded(Shape{batch, positions});
  std::ranges::copy(tokens, padded.span().begin());
  const StackActivations activations(model.specification(), batch, positions, Keep::one_block, 0,
                                     model.device());
  model.forward(padded, {.sequences = {batch, positions}}, activations);
  // 2: logits and losses, chunk by chunk
  const View<float> states = activations.final_norm();  // (N, C)
  const std::int64_t chunk_rows = std::min(rows_at_once, states.extent(0));
  Tensor<float> logits(Shape{chunk_rows, model.specification().vocabulary_size});
  Tensor<std::int32_t> targets(Shape{chunk_rows});
  Tensor<float> losses(Shape{chunk_rows});
  ScoredText scored;
  scored.scores.resize(static_cast<std::size_t>(length - 1));
  for (std::int64_t next = 0; next < length; next += chunk_rows) {
    // The last chunk has the same size and overlaps the previous one.
    const std::int64_t begin = std::min(next, states.extent(0) - chunk_rows);
    for (std::int64_t row = 0; row < chunk_rows; ++row) {
      const auto target = static_cast<std::size_t>(begin + row + 1);
      targets.span()[static_cast<std::size_t>(row)] =
          target < tokens.size() ? tokens[target] : kernels::ignored_target;
    }
    model.project(states.slice(0, begin, begin + chunk_rows), logits);
    kernels::cross_entropy_forward(logits, targets, losses);
    const std::int64_t end = std::min(begin + chunk_rows, length - 1);
    parallel_items(end - next, [&](std::int64_t item) {
      const std::int64_t row = next - begin + item;
      const auto i = static_cast<std::size_t>(next + item);
      scored.scores[i] = score_row(logits.view()[row].span(), tokens[i + 1],
                                   losses.span()[static_cast<std::size_t>(row)], count);
    });
    if (length <= begin + chunk_rows) {
      const std::span<const float> last = logits.view()[length - 1 - begin].span();
      scored.next_logits.assign(last.begin(), last.end());
    }
  }
  return scored;
}

}  // namespace heed
