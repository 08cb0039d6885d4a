// The preconditions of kernels.h, shared by the fast path and the reference. Each throws
// Error{invalid_argument} naming the invalid operand.
#pragma once

#include <string_view>

#include "kernels/operands.h"

namespace heed::kernels::checks {

template <class T>
void contiguous(const View<T>& view, const Shape& shape, std::string_view name) {
  require_shape(view, shape, name);
  require(view.contiguous(), ErrorCode::invalid_argument, "{} of shape {} must be contiguous", name,
          shape);
}

template <class T>
void rank(const View<T>& view, int expected, std::string_view name) {
  require(view.rank() == expected, ErrorCode::invalid_argument,
          "{} has shape {}, expected {} dimensions", name, view.shape(), expected);
}

inline void dropout(const Dropout& dropout) {
  require(dropout.rate >= 0.0F && dropout.rate < 1.0F, ErrorCode::invalid_argument,
          "the dropout rate must be in [0, 1), not {}", dropout.rate);
}

template <class T, class Out>
void embedding(const EmbeddingInput<T>& input, const View<Out>& out,
               const EmbeddingGradients<T>& gradients, std::string_view out_name) {
  rank(input.tokens, 2, "tokens");
  rank(input.token_table, 2, "token_table");
  const std::int64_t batch = input.tokens.extent(0), positions = input.tokens.extent(1);
  const std::int64_t vocabulary = input.token_table.extent(0),
                     channels = input.token_table.extent(1);
  contiguous(input.tokens, input.tokens.shape(), "tokens");
  contiguous(input.token_table, input.token_table.shape(), "token_table");
  contiguous(out, Shape{batch, positions, channels}, out_name);
  if (input.position_table.present()) {
    rank(input.position_table, 2, "position_table");
    const std::int64_t last = input.position_table.extent(0);
    contiguous(input.position_table, Shape{last, channels}, "position_table");
    require(input.first_positions.empty() ||
                static_cast<std::int64_t>(input.first_positions.size()) == batch,
            ErrorCode::invalid_argument, "{} first positions for {} sequences",
            input.first_positions.size(), batch);
    for (std::int64_t b = 0; b < batch; ++b) {
      const std::int64_t first = input.position(b, 0);
      require(first >= 0 && first <= last - positions, ErrorCode::invalid_argument,
              "positions {} to {} are outside the position table of {} rows", first,
              first + positions - 1, last);
    }
  }
  if (gradients.token_table.present()) {
    contiguous(gradients.token_table, input.token_table.shape(), "gradient of token_table");
  }
  if (gradients.position_table.present()) {
    contiguous(gradients.position_table, input.position_table.shape(),
               "gradient of position_table");
  }
  const std::int32_t* tokens = input.tokens.data();
  for (std::int64_t i = 0; i < batch * positions; ++i) {
    require(tokens[i] >= 0 && tokens[i] < vocabulary, ErrorCode::invalid_argument,
            "token {} at batch {}, position {} is outside the vocabulary of {}", tokens[i],
            i / positions, i % positions, vocabulary);
  }
}

template <class T>
void layer_norm(const View<const T>& x, const NormParameters<T>& parameters,
                const NormStatistics<T>& statistics) {
  rank(x, 2, "x");
  contiguous(x, x.shape(), "x");
  require(x.extent(1) > 0, ErrorCode::invalid_argument, "x has shape {}: no channels to normalise",
          x.shape());
  contiguous(parameters.gain, Shape{x.extent(1)}, "gain");
  if (parameters.bias.present()) contiguous(parameters.bias, Shape{x.extent(1)}, "bias");
  contiguous(statistics.mean, Shape{x.extent(0)}, "mean");
  contiguous(statistics.reciprocal_deviation, Shape{x.extent(0)}, "reciprocal_deviation");
}

template <class T>
void layer_norm_backward(const View<const T>& x, const NormParameters<T>& parameters,
                         const NormStatistics<T>& statistics, const View<const T>& d_out,
                         const View<T>& d_x, const NormGradients<T>& gradients) {
  layer_norm(x, parameters, statistics);
  contiguous(d_out, x.shape(), "d_out");
  contiguous(d_x, x.shape(), "d_x");
  if (gradients.gain.present()) {
    contiguous(gradients.gain, parameters.gain.shape(), "gradient of gain");
  }
  if (gradients.bias.present()) {
    contiguous(gradients.bias, parameters.gain.shape(), "gradient of bias");
  }
}

// x (N, I), weight (O, I), out (N, O), bias (O).
template <class X, class W, class Out, class Bias>
void linear(const View<X>& x, const View<W>& weight, const View<Out>& out, const View<Bias>& bias,
            std::string_view x_name, std::string_view out_name) {
  rank(x, 2, x_name);
  rank(weight, 2, "weight");
  contiguous(x, Shape{x.extent(0), weight.extent(1)}, x_name);
  contiguous(weight, weight.shape(), "weight");
  contiguous(out, Shape{x.extent(0), weight.extent(0)}, out_name);
  if (bias.present()) contiguous(bias, Shape{weight.extent(0)}, "bias");
}

template <class T, class Out>
void same_shape(const View<T>& x, const View<Out>& out, std::string_view x_name,
                std::string_view out_name) {
  contiguous(x, x.shape(), x_name);
  contiguous(out, x.shape(), out_name);
}

// A (B, positions, H, D) view whose last dimension is dense.
template <class T>
void heads(const View<T>& view, const Shape& shape, std::string_view name) {
  require_shape(view, shape, name);
  require(view.extent(3) <= 1 || view.stride(3) == 1, ErrorCode::invalid_argument,
          "the last dimension of {} must be dense", name);
}

template <class T>
void attention_input(const AttentionInput<T>& input) {
  rank(input.query, 4, "query");
  rank(input.key, 4, "key");
  const Shape& query = input.query.shape();
  const Shape memory{query[0], input.key.extent(1), query[2], query[3]};
  heads(input.query, query, "query");
  heads(input.key, memory, "key");
  heads(input.value, memory, "value");
  require(query[3] > 0 && memory[1] > 0, ErrorCode::invalid_argument,
          "query has shape {} and key {}: attention needs a memory and a head size", query, memory);
  require(input.mask == Mask::full || query[1] <= memory[1], ErrorCode::invalid_argument,
          "causal attention of {} queries needs a memory at least as long, not {}", query[1],
          memory[1]);
  dropout(input.dropout);
}

template <class T, class Out, class LogSumExp>
void attention_output(const AttentionInput<T>& input, const View<Out>& out,
                      const View<LogSumExp>& log_sum_exp, std::string_view out_name) {
  attention_input(input);
  const Shape& query = input.query.shape();
  heads(out, query, out_name);
  contiguous(log_sum_exp, Shape{query[0], query[2], query[1]}, "log_sum_exp");
}

template <class T>
void attention_pattern(const AttentionInput<T>& input, const View<const T>& log_sum_exp) {
  attention_input(input);
  const Shape& query = input.query.shape();
  contiguous(log_sum_exp, Shape{query[0], query[2], query[1]}, "log_sum_exp");
}

template <class T>
void attention_gradients(const AttentionInput<T>& input, const AttentionGradients<T>& gradients) {
  heads(gradients.query, input.query.shape(), "gradient of query");
  heads(gradients.key, input.key.shape(), "gradient of key");
  heads(gradients.value, input.value.shape(), "gradient of value");
}

template <class T>
void attention_rectangle(const AttentionInput<T>& input, const AttentionTile& tile) {
  attention_input(input);
  const Shape& query = input.query.shape();
  const std::int64_t memory = input.key.extent(1);
  require(tile.batch >= 0 && tile.batch < query[0] && tile.head >= 0 && tile.head < query[2] &&
              0 <= tile.query_begin && tile.query_begin <= tile.query_end &&
              tile.query_end <= query[1] && 0 <= tile.key_begin && tile.key_begin <= tile.key_end &&
              tile.key_end <= memory,
          ErrorCode::invalid_argument,
          "tile of batch {}, head {}, queries [{}, {}), keys [{}, {}) is outside {} batches, {} "
          "heads, {} queries, {} keys",
          tile.batch, tile.head, tile.query_begin, tile.query_end, tile.key_begin, tile.key_end,
          query[0], query[2], query[1], memory);
}

template <class T>
void attention_tile(const AttentionInput<T>& input, const AttentionTile& tile, const View<T>& out) {
  attention_rectangle(input, tile);
  require_shape(out, Shape{tile.query_end - tile.query_begin, tile.key_end - tile.key_begin},
                "out");
  require(out.extent(1) <= 1 || out.stride(1) == 1, ErrorCode::invalid_argument,
          "the last dimension of out must be dense");
}

template <class Logits, class T>
void cross_entropy(const View<Logits>& logits, const View<const std::int32_t>& targets,
                   const View<T>& losses) {
  rank(logits, 2, "logits");
  contiguous(logits, logits.shape(), "logits");
  const std::int64_t rows = logits.extent(0), vocabulary = logits.extent(1);
  contiguous(targets, Shape{rows}, "targets");
  contiguous(losses, Shape{rows}, "losses");
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int32_t target = targets.data()[row];
    require(target == ignored_target || (target >= 0 && target < vocabulary),
            ErrorCode::invalid_argument, "target {} of row {} is outside the vocabulary of {}",
            target, row, vocabulary);
  }
}

template <class T>
void adamw(const AdamWState<T>& state, const AdamWStep<T>& step) {
  const std::size_t size = state.parameters.size();
  require(state.gradients.size() == size && state.first_moment.size() == size &&
              state.second_moment.size() == size,
          ErrorCode::invalid_argument,
          "{} parameters with {} gradients and {} and {} moments: the sizes must agree", size,
          state.gradients.size(), state.first_moment.size(), state.second_moment.size());
  require(step.step >= 1, ErrorCode::invalid_argument, "optimizer steps count from 1, not {}",
          step.step);
}

}  // namespace heed::kernels::checks
