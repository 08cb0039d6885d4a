#include "model/variants.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/kernels.h"
#include "model/block.h"
#include "model/input_checks.h"
#include "model/matrix_copy.h"

namespace heed {
namespace {

View<float> first_rows(View<float> matrix, std::int64_t rows) { return matrix.slice(0, 0, rows); }

// (1, R, heads, D) -> (R, heads·D)
View<const float> matrix_of(const View<const float>& heads) {
  return {heads.data(), {heads.extent(1), heads.extent(2) * heads.extent(3)}, {heads.stride(1), 1}};
}

// (R, heads·D), dense -> (1, R, heads, D)
template <class T>
View<T> heads_of(View<T> rows, std::int64_t size) {
  return rows.reshape({1, rows.extent(0), rows.extent(1) / size, size});
}

}  // namespace

Variants::Variants(const Gpt& gpt, const GptActivations& base, std::vector<std::int64_t> firsts)
    : gpt_(gpt),
      base_(base),
      positions_(base.positions()),
      pass_{.batch = 1, .positions = base.positions()},
      firsts_(std::move(firsts)) {
  require_predicts_next(gpt.config(), "variants of a text");
  require_sums_to_logits(gpt.config(), "variants of a text");
  require(base.batch() == 1 && base.keep() == Keep::every_block, ErrorCode::invalid_argument,
          "variants need the activations of one sequence with every block kept");
  begins_.push_back(0);
  std::vector<std::int64_t> positions;  // of each row
  for (const std::int64_t first : firsts_) {
    require(first >= 0 && first < positions_, ErrorCode::invalid_argument,
            "a variant cannot begin at position {} of a sequence of {}", first, positions_);
    begins_.push_back(begins_.back() + positions_ - first);
    for (std::int64_t t = first; t < positions_; ++t) positions.push_back(t);
  }
  const StackSpecification& config = gpt.config();
  const AttentionSpecification& attention = config.block.attention;
  const std::int64_t n = rows(), c = config.channels, f = config.feed_forward();
  const std::int64_t a = attention.query_width(), k = attention.key_value_width();
  rotary_ = RotaryRows(attention, positions);
  stream_storage_ = Tensor<float>(Shape{n, c});
  stream_ = stream_storage_;
  norm_ = Tensor<float>(Shape{n, c});
  query_key_value_ = Tensor<float>(Shape{n, attention.projected_width()});
  if (attention.changes_query_and_key()) positioned_ = Tensor<float>(Shape{n, a + k});
  if (attention.query_key_norm) {
    query_deviation_ = Tensor<float>(Shape{n, attention.query_heads});
    key_deviation_ = Tensor<float>(Shape{n, attention.key_value_heads});
  }
  mixed_ = Tensor<float>(Shape{n, a});
  branch_out_ = Tensor<float>(Shape{n, c});
  neurons_ = Tensor<float>(Shape{n, f});
  if (config.block.feed_forward.gated) linear_ = Tensor<float>(Shape{n, f});
  activated_ = Tensor<float>(Shape{n, f});
  mean_ = Tensor<float>(Shape{n});
  deviation_ = Tensor<float>(Shape{n});
  queries_ = Tensor<float>(Shape{positions_, a});
  keys_ = Tensor<float>(Shape{positions_, k});
  values_ = Tensor<float>(Shape{positions_, k});
  attended_ = Tensor<float>(Shape{positions_, a});
  log_sum_exp_ = Tensor<float>(Shape{config.heads() * positions_});
  last_rows_ = Tensor<float>(Shape{count(), c});
  if (config.is_parallel()) last_read_ = Tensor<float>(Shape{count(), c});
}

std::int64_t Variants::bytes_per_row(const StackSpecification& config) {
  const AttentionSpecification& attention = config.block.attention;
  const std::int64_t heads =
      attention.projected_width() + attention.query_width() +
      (attention.changes_query_and_key()
           ? attention.query_width() + attention.key_value_width() + 2 * attention.query_heads
           : 0);
  const std::int64_t neurons = config.block.feed_forward.gated ? 3 : 2;
  const std::int64_t floats = 3 * config.channels + heads + neurons * config.feed_forward() + 2;
  return floats * static_cast<std::int64_t>(sizeof(float));
}

AttentionActivations Variants::attention_rows(std::int64_t begin, std::int64_t end) {
  const auto part = [&](Tensor<float>& rows) {
    return rows.present() ? rows.view().slice(0, begin, end) : View<float>();
  };
  return {.query_key_value = part(query_key_value_),
          .positioned = part(positioned_),
          .query_deviation = part(query_deviation_),
          .key_deviation = part(key_deviation_)};
}

// mixed (T - first_query, A) for the queries of a variant from position `first_query` on. They are
// computed from a multiple of query_alignment on, as in the base's pass.
void Variants::attend(std::int64_t layer, std::int64_t variant, std::int64_t first_query,
                      View<float> mixed) {
  const AttentionSpecification& attention = gpt_.config().block.attention;
  const std::int64_t shared = firsts_[static_cast<std::size_t>(variant)];
  const std::int64_t aligned = first_query / query_alignment * query_alignment;
  const Heads<const float> base = attention_heads(attention, 1, base_.block(layer).attention);
  const Heads<const float> own =
      attention_heads(attention, 1,
                      attention_rows(begins_[static_cast<std::size_t>(variant)],
                                     begins_[static_cast<std::size_t>(variant) + 1]));
  // Rows before the variant's first are the base's.
  const auto gather = [&](const View<const float>& from_base, const View<const float>& from_own,
                          View<float> to) {
    copy_matrix(matrix_of(from_base).slice(0, 0, shared), to.slice(0, 0, shared));
    copy_matrix(matrix_of(from_own), to.slice(0, shared, positions_));
  };
  gather(base.query, own.query, queries_);
  gather(base.key, own.key, keys_);
  gather(base.value, own.value, values_);
  const std::int64_t size = attention.head_size, queries = positions_ - aligned;
  const View<float> attended = attended_.view().slice(0, 0, queries);
  const RotaryRows none;
  const LayerPass at = layer_pass(layer, none);
  heed::attend(
      at,
      attention_input(
          at, AttentionKind::self,
          {heads_of(View<const float>(queries_).slice(0, aligned, positions_), size),
           heads_of(View<const float>(keys_), size), heads_of(View<const float>(values_), size)}),
      heads_of(attended, size),
      View<float>(log_sum_exp_.data(), {1, attention.query_heads, queries}));
  copy_matrix(View<const float>(attended).slice(0, first_query - aligned, queries), mixed);
}

void Variants::add_feed_forward(std::int64_t layer, View<const float> read, View<float> stream) {
  const RotaryRows none;
  const LayerPass at = layer_pass(layer, none);
  const std::int64_t r = stream.extent(0);
  const View<float> norm = first_rows(norm_, r), out = first_rows(branch_out_, r);
  const bool has_mean = gpt_.config().block.norm.kind == NormKind::layer;
  normalise(gpt_.config(), read, at.parameters.norm_2,
            {has_mean ? first_rows(mean_, r) : View<float>(), first_rows(deviation_, r)}, norm);
  feed_forward(at, norm,
               {.pre = first_rows(neurons_, r),
                .linear = linear_.present() ? first_rows(linear_, r) : View<float>(),
                .post = first_rows(activated_, r)},
               out);
  kernels::add(stream, out, stream);
}

// Queries, keys and values of all rows.
void Variants::project_heads(std::int64_t layer) {
  const LayerPass at = layer_pass(layer, rotary_);
  const bool has_mean = gpt_.config().block.norm.kind == NormKind::layer;
  normalise(gpt_.config(), stream_, at.parameters.norm_1,
            {has_mean ? mean_.view() : View<float>(), deviation_}, norm_);
  project(pass_, norm_, at.parameters.query_key_value, query_key_value_);
  position(at, attention_rows(0, rows()));
}

void Variants::block(std::int64_t layer) {
  const BlockParameters& parameters = gpt_.parameters().block(layer);
  project_heads(layer);
  for (std::int64_t variant = 0; variant < count(); ++variant) {
    attend(layer, variant, firsts_[static_cast<std::size_t>(variant)],
           mixed_.view().slice(0, begins_[static_cast<std::size_t>(variant)],
                               begins_[static_cast<std::size_t>(variant) + 1]));
  }
  project(pass_, mixed_, parameters.projection, branch_out_);
  if (!gpt_.config().is_parallel()) {
    kernels::add(stream_, branch_out_, stream_);
    return add_feed_forward(layer, stream_, stream_);
  }
  Tensor<float> read(stream_.shape());
  std::ranges::copy(stream_.span(), read.data());
  kernels::add(stream_, branch_out_, stream_);
  add_feed_forward(layer, read, stream_);
}

View<float> Variants::gather_last_rows(View<const float> rows) {
  for (std::int64_t variant = 0; variant < count(); ++variant) {
    std::copy_n(&rows(begins_[static_cast<std::size_t>(variant) + 1] - 1, 0), rows.extent(1),
                &last_rows_.view()(variant, 0));
  }
  return last_rows_;
}

// In the last block only the last position of each variant attends; the others provide keys and
// values.
void Variants::last_block(std::int64_t layer) {
  const BlockParameters& parameters = gpt_.parameters().block(layer);
  const std::int64_t b = count();
  project_heads(layer);
  const View<float> mixed = first_rows(mixed_, b), out = first_rows(branch_out_, b);
  for (std::int64_t variant = 0; variant < b; ++variant) {
    attend(layer, variant, positions_ - 1, mixed.slice(0, variant, variant + 1));
  }
  project(pass_, mixed, parameters.projection, out);
  const View<float> last = gather_last_rows(stream_);
  View<const float> read = last;
  if (gpt_.config().is_parallel()) {
    std::ranges::copy(last.span(), last_read_.data());
    read = last_read_;
  }
  kernels::add(last, out, last);
  add_feed_forward(layer, read, last);
}

Tensor<float> Variants::run(std::int64_t layer) {
  const std::int64_t layers = gpt_.config().layers, b = count();
  for (; layer + 1 < layers; ++layer) block(layer);
  if (layer < layers) {
    last_block(layer);
  } else {
    gather_last_rows(stream_);
  }
  const bool has_mean = gpt_.config().block.norm.kind == NormKind::layer;
  normalise(gpt_.config(), last_rows_, gpt_.parameters().final_norm(),
            {has_mean ? first_rows(mean_, b) : View<float>(), first_rows(deviation_, b)},
            first_rows(norm_, b));
  Tensor<float> logits(Shape{b, gpt_.config().vocabulary_size});
  gpt_.project(first_rows(norm_, b), logits, positions_);
  return logits;
}

}  // namespace heed
