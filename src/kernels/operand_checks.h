// The preconditions of kernels.h, shared by the fast path and the reference. Each throws
// Error{invalid_argument} naming the invalid operand.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>

#include "kernels/attention_summaries.h"
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

// A (N, H, D) view whose last dimension is dense.
template <class T>
void rows_of_heads(const View<T>& view, const Shape& shape, std::string_view name) {
  require_shape(view, shape, name);
  require(view.extent(2) <= 1 || view.stride(2) == 1, ErrorCode::invalid_argument,
          "the last dimension of {} must be dense", name);
}

// Rows (N, C) or heads (N, H, C) to be normalised.
template <class T>
void norm_rows(const View<T>& view, const Shape& shape, std::string_view name) {
  if (shape.rank() == 3) return rows_of_heads(view, shape, name);
  contiguous(view, shape, name);
}

template <class T, class Out, class Reciprocal>
void rms_norm(const View<const T>& x, const NormParameters<T>& parameters, const View<Out>& out,
              const View<Reciprocal>& reciprocal_deviation, std::string_view out_name) {
  require(x.rank() == 2 || x.rank() == 3, ErrorCode::invalid_argument,
          "x has shape {}, expected 2 or 3 dimensions", x.shape());
  norm_rows(x, x.shape(), "x");
  norm_rows(out, x.shape(), out_name);
  const std::int64_t channels = x.extent(x.rank() - 1);
  require(channels > 0, ErrorCode::invalid_argument, "x has shape {}: no channels to normalise",
          x.shape());
  contiguous(parameters.gain, Shape{channels}, "gain");
  require(!parameters.bias.present(), ErrorCode::invalid_argument,
          "root mean square normalisation has no bias");
  const Shape rows = x.rank() == 2 ? Shape{x.extent(0)} : Shape{x.extent(0), x.extent(1)};
  contiguous(reciprocal_deviation, rows, "reciprocal_deviation");
}

template <class T>
void rms_norm_backward(const View<const T>& x, const NormParameters<T>& parameters,
                       const View<const T>& reciprocal_deviation, const View<const T>& d_out,
                       const View<T>& d_x, const NormGradients<T>& gradients) {
  rms_norm(x, parameters, d_out, reciprocal_deviation, "d_out");
  norm_rows(d_x, x.shape(), "d_x");
  if (gradients.gain.present()) {
    contiguous(gradients.gain, parameters.gain.shape(), "gradient of gain");
  }
}

template <class T>
void rotary(const View<T>& x, const RotaryTable<T>& table) {
  rank(x, 3, "x");
  rows_of_heads(x, x.shape(), "x");
  rank(table.cosine, 2, "cosine");
  const Shape angles{x.extent(0), table.cosine.extent(1)};
  contiguous(table.cosine, angles, "cosine");
  contiguous(table.sine, angles, "sine");
  require(2 * angles[1] <= x.extent(2), ErrorCode::invalid_argument,
          "{} angles rotate {} channels, but x of shape {} has heads of {}", angles[1],
          2 * angles[1], x.shape(), x.extent(2));
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

inline void positions(std::int64_t positions) {
  require(positions >= 0 || positions == decoding_step, ErrorCode::invalid_argument,
          "the number of positions is {}: expected 0, a positive number or decoding_step",
          positions);
}

template <class T, class Out>
void same_shape(const View<T>& x, const View<Out>& out, std::string_view x_name,
                std::string_view out_name) {
  contiguous(x, x.shape(), x_name);
  contiguous(out, x.shape(), out_name);
}

template <class T>
void soft_cap(T cap) {
  require(cap > T(0) && std::isfinite(cap), ErrorCode::invalid_argument,
          "the soft cap is {}: expected a positive number", cap);
}

template <class T>
void gated_activation_backward(const View<const T>& gate, const View<const T>& up,
                               const View<const T>& d_out, const View<T>& d_gate,
                               const View<T>& d_up) {
  same_shape(gate, up, "gate", "up");
  same_shape(gate, d_out, "gate", "d_out");
  same_shape(gate, d_gate, "gate", "d_gate");
  same_shape(gate, d_up, "gate", "d_up");
}

// A (B, positions, H, D) view whose last dimension is dense.
template <class T>
void heads(const View<T>& view, const Shape& shape, std::string_view name) {
  require_shape(view, shape, name);
  require(view.extent(3) <= 1 || view.stride(3) == 1, ErrorCode::invalid_argument,
          "the last dimension of {} must be dense", name);
}

// The bias of scores of queries (B, T, H, D) against `memory` positions.
template <class Input>
void position_bias(const Input& input, const Shape& query, std::int64_t memory) {
  const auto& bias = input.position_bias;
  if (!bias.present()) return;
  rank(bias.values, 2, "position bias");
  require(bias.values.extent(0) == query[2], ErrorCode::invalid_argument,
          "position bias of shape {} for {} heads", bias.values.shape(), query[2]);
  require(bias.values.extent(1) <= 1 || bias.values.stride(1) == 1, ErrorCode::invalid_argument,
          "the last dimension of position bias must be dense");
  require(!(input.soft_cap > 0), ErrorCode::invalid_argument,
          "position bias with a soft cap of {}: expected no cap", input.soft_cap);
  const bool causal = input.mask == Mask::causal;
  const std::int64_t lowest =
      1 - (input.window > 0 ? std::min<std::int64_t>(input.window, memory) : memory);
  const std::int64_t highest = causal ? 0 : query[1] - 1;
  const std::int64_t last = bias.first + bias.values.extent(1) - 1;
  require(query[1] == 0 || (bias.first <= lowest && highest <= last), ErrorCode::invalid_argument,
          "position bias of distances {} to {}, expected {} to {}", bias.first, last, lowest,
          highest);
}

// A quantised cache holds all that its queries attend to.
template <class Input>
std::int64_t query_offset_of(const Input& input) {
  if constexpr (requires { input.query_offset; }) return input.query_offset;
  return 0;
}

// What every kind of attention has besides its views: queries (B, T, H, D) and the memory
// (B, S, G, D).
template <class Input>
void attention_options(const Input& input, const Shape& query, std::int64_t memory,
                       std::int64_t key_heads) {
  require(key_heads == query[2] || (key_heads > 0 && query[2] % key_heads == 0),
          ErrorCode::invalid_argument, "{} query heads are not a multiple of {} key heads",
          query[2], key_heads);
  require(query[3] > 0 && memory > 0, ErrorCode::invalid_argument,
          "query has shape {} and the memory {} rows: attention needs a memory and a head size",
          query, memory);
  const std::int64_t offset = query_offset_of(input);
  require(
      offset == 0 || (offset > 0 && input.mask == Mask::causal && !input.position_bias.present()),
      ErrorCode::invalid_argument,
      "queries {} positions after the memory: expected 0 or, with a causal mask and without "
      "position bias, a positive number",
      offset);
  require(input.mask == Mask::full || query[1] <= memory + offset, ErrorCode::invalid_argument,
          "causal attention of {} queries needs a memory at least as long, not {}", query[1],
          memory);
  require(input.window == 0 || (input.window > 0 && input.mask == Mask::causal),
          ErrorCode::invalid_argument,
          "the window is {}: expected 0 or, with a causal mask, a positive number", input.window);
  require(input.soft_cap >= 0 && std::isfinite(input.soft_cap), ErrorCode::invalid_argument,
          "the soft cap is {}: expected 0 or a positive number", input.soft_cap);
  require(input.positions == 0 || input.positions >= query[1], ErrorCode::invalid_argument,
          "{} queries are not part of a pass of {} positions", query[1], input.positions);
  position_bias(input, query, memory);
}

template <class T>
void attention_input(const AttentionInput<T>& input) {
  rank(input.query, 4, "query");
  rank(input.key, 4, "key");
  const Shape& query = input.query.shape();
  const Shape memory{query[0], input.key.extent(1), input.key.extent(2), query[3]};
  heads(input.query, query, "query");
  heads(input.key, memory, "key");
  heads(input.value, memory, "value");
  attention_options(input, query, memory[1], memory[2]);
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
void attention_part(const AttentionPart<T>& part, const View<T>& out, const View<T>& log_sum_exp) {
  rank(out, 4, "out");
  const Shape rows{out.extent(0), out.extent(2), out.extent(1)};
  heads(out, out.shape(), "out");
  heads(part.out, out.shape(), "out of a part");
  contiguous(log_sum_exp, rows, "log_sum_exp");
  contiguous(part.log_sum_exp, rows, "log_sum_exp of a part");
}

template <class T>
void attention_pattern(const AttentionInput<T>& input, const View<const T>& log_sum_exp) {
  attention_input(input);
  const Shape& query = input.query.shape();
  contiguous(log_sum_exp, Shape{query[0], query[2], query[1]}, "log_sum_exp");
}

// Results of a sequence each, unlike keys and values, which several sequences may share.
template <class T>
void head_gradients(const View<T>& view, const Shape& shape, std::string_view name) {
  heads(view, shape, name);
  require(view.extent(0) <= 1 || view.stride(0) != 0, ErrorCode::invalid_argument,
          "{} of shape {} must have memory of its own for each sequence, not a stride of 0", name,
          shape);
}

template <class T>
void attention_gradients(const AttentionInput<T>& input, const AttentionGradients<T>& gradients) {
  head_gradients(gradients.query, input.query.shape(), "gradient of query");
  head_gradients(gradients.key, input.key.shape(), "gradient of key");
  head_gradients(gradients.value, input.value.shape(), "gradient of value");
  if (!gradients.position_bias.present()) return;
  require(input.position_bias.present() && input.scale != 0, ErrorCode::invalid_argument,
          "a gradient of position bias needs a position bias and a scale other than {}",
          input.scale);
  require_shape(gradients.position_bias, input.position_bias.values.shape(),
                "gradient of position bias");
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

inline void targets_in_vocabulary(const View<const std::int32_t>& targets,
                                  std::int64_t vocabulary) {
  for (std::int64_t row = 0; row < targets.size(); ++row) {
    const std::int32_t target = targets.data()[row];
    require(target == ignored_target || (target >= 0 && target < vocabulary),
            ErrorCode::invalid_argument, "target {} of row {} is outside the vocabulary of {}",
            target, row, vocabulary);
  }
}

template <class Logits, class T>
void cross_entropy(const View<Logits>& logits, const View<const std::int32_t>& targets,
                   const View<T>& losses, const LabelSmoothing<T>& smoothing) {
  rank(logits, 2, "logits");
  contiguous(logits, logits.shape(), "logits");
  const std::int64_t rows = logits.extent(0), vocabulary = logits.extent(1);
  contiguous(targets, Shape{rows}, "targets");
  contiguous(losses, Shape{rows}, "losses");
  require(smoothing.rate >= 0 && smoothing.rate <= 1, ErrorCode::invalid_argument,
          "the label smoothing is {}: expected a number from 0 to 1", smoothing.rate);
  if (smoothing.losses.present()) contiguous(smoothing.losses, Shape{rows}, "smoothed losses");
  targets_in_vocabulary(targets, vocabulary);
}

template <class Logits, class T>
void cross_entropy_piece(const View<Logits>& logits, const VocabularyPiece& piece,
                         const View<const std::int32_t>& targets, const View<T>& normalisers,
                         std::string_view normaliser_name) {
  rank(logits, 2, "logits");
  contiguous(logits, logits.shape(), "logits");
  const std::int64_t rows = logits.extent(0), end = piece.first + logits.extent(1);
  contiguous(targets, Shape{rows}, "targets");
  contiguous(normalisers, Shape{rows}, normaliser_name);
  require(piece.first >= 0 && end <= piece.vocabulary, ErrorCode::invalid_argument,
          "words {} to {} are outside the vocabulary of {}", piece.first, end - 1,
          piece.vocabulary);
  targets_in_vocabulary(targets, piece.vocabulary);
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

// The preconditions of attention_summaries.h, for the fast path and the reference.

template <class T>
void whole_memory(const AttentionInput<T>& input) {
  require(input.query_offset == 0, ErrorCode::invalid_argument,
          "summaries of queries {} positions after the memory: expected a whole memory",
          input.query_offset);
}

template <class T>
void row_statistics(const AttentionInput<T>& input, const View<const T>& log_sum_exp,
                    const View<const std::int32_t>& tokens,
                    const AttentionRowStatistics<T>& statistics) {
  attention_pattern(input, log_sum_exp);
  whole_memory(input);
  require(input.query.extent(1) <= input.key.extent(1), ErrorCode::invalid_argument,
          "row statistics of {} queries need a memory at least as long, not {}",
          input.query.extent(1), input.key.extent(1));
  if (tokens.present())
    contiguous(tokens, Shape{input.key.extent(0), input.key.extent(1)}, "tokens");
  const Shape rows = log_sum_exp.shape();
  contiguous(statistics.entropy, rows, "entropy");
  contiguous(statistics.distance, rows, "distance");
  contiguous(statistics.first, rows, "first");
  contiguous(statistics.self, rows, "self");
  contiguous(statistics.previous, rows, "previous");
  contiguous(statistics.duplicate, rows, "duplicate");
  contiguous(statistics.induction, rows, "induction");
  contiguous(statistics.largest, rows, "largest");
}

template <class T>
void pooled_tile(const AttentionInput<T>& input, const AttentionTile& tile, std::int64_t pool,
                 const PooledAttention<T>& out) {
  require(pool >= 1 && pool <= 64 && (pool & (pool - 1)) == 0, ErrorCode::invalid_argument,
          "a pool of {} is not 1, 2, 4, 8, 16, 32 or 64", pool);
  attention_rectangle(input, tile);
  whole_memory(input);
  const Shape cells{(tile.query_end - tile.query_begin + pool - 1) / pool,
                    (tile.key_end - tile.key_begin + pool - 1) / pool};
  for (const View<T>& view : {out.sum, out.largest}) {
    require_shape(view, cells, "out");
    require(view.extent(1) <= 1 || view.stride(1) == 1, ErrorCode::invalid_argument,
            "the last dimension of out must be dense");
  }
}

}  // namespace heed::kernels::checks
