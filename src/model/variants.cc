#include "model/variants.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/kernels.h"
#include "model/matrix_copy.h"

namespace heed {
namespace {

View<float> first_rows(View<float> matrix, std::int64_t rows) { return matrix.slice(0, 0, rows); }

}  // namespace

Variants::Variants(const Gpt& gpt, const GptActivations& base, std::vector<std::int64_t> firsts)
    : gpt_(gpt), base_(base), positions_(base.positions()), firsts_(std::move(firsts)) {
  require(base.batch() == 1 && base.keep() == Keep::every_block, ErrorCode::invalid_argument,
          "variants need the activations of one sequence with every block kept");
  begins_.push_back(0);
  for (const std::int64_t first : firsts_) {
    require(first >= 0 && first < positions_, ErrorCode::invalid_argument,
            "a variant cannot begin at position {} of a sequence of {}", first, positions_);
    begins_.push_back(begins_.back() + positions_ - first);
  }
  const GptConfig& config = gpt.config();
  const std::int64_t n = rows(), c = config.channels, a = config.attention_width();
  stream_storage_ = Tensor<float>(Shape{n, c});
  stream_ = stream_storage_;
  norm_ = Tensor<float>(Shape{n, c});
  query_key_value_ = Tensor<float>(Shape{n, 3 * a});
  mixed_ = Tensor<float>(Shape{n, a});
  branch_out_ = Tensor<float>(Shape{n, c});
  neurons_ = Tensor<float>(Shape{n, config.feed_forward});
  mean_ = Tensor<float>(Shape{n});
  deviation_ = Tensor<float>(Shape{n});
  log_sum_exp_ = Tensor<float>(Shape{config.heads * positions_});
  keys_ = Tensor<float>(Shape{positions_, a});
  values_ = Tensor<float>(Shape{positions_, a});
  last_rows_ = Tensor<float>(Shape{count(), c});
}

std::int64_t Variants::bytes_per_row(const GptConfig& config) {
  const std::int64_t floats =
      3 * config.channels + 4 * config.attention_width() + config.feed_forward + 2;
  return floats * static_cast<std::int64_t>(sizeof(float));
}

// mixed (R, A) for the queries (R, A) at the last R positions of a variant.
void Variants::attend(std::int64_t layer, std::int64_t variant, View<const float> query,
                      View<float> mixed) {
  const GptConfig& config = gpt_.config();
  const std::int64_t a = config.attention_width(), shared = firsts_[variant];
  const View<const float> base = base_.block(layer).attention.query_key_value;  // (T, 3A)
  const View<const float> own =
      query_key_value_.view().slice(0, begins_[variant], begins_[variant + 1]);
  for (const auto& [column, to] : {std::pair{a, keys_.view()}, std::pair{2 * a, values_.view()}}) {
    copy_matrix(base.slice(0, 0, shared).slice(1, column, column + a), to.slice(0, 0, shared));
    copy_matrix(own.slice(1, column, column + a), to.slice(0, shared, positions_));
  }
  const auto heads = [&](auto rows) {  // (R, A) -> (1, R, H, D)
    using Rows = decltype(rows);
    const std::int64_t stride = rows.stride(0);
    return Rows(rows.data(), {1, rows.extent(0), config.heads, config.head_size},
                {rows.extent(0) * stride, stride, config.head_size, 1});
  };
  const std::int64_t queries = query.extent(0);
  kernels::attention_forward({.query = heads(query),
                              .key = heads(View<const float>(keys_)),
                              .value = heads(View<const float>(values_)),
                              .mask = kernels::Mask::causal,
                              .scale = 1.0F / std::sqrt(static_cast<float>(config.head_size))},
                             heads(mixed),
                             View<float>(log_sum_exp_.data(), {1, config.heads, queries}));
}

void Variants::feed_forward(std::int64_t layer, View<float> stream) {
  const BlockParameters& parameters = gpt_.parameters().block(layer);
  const std::int64_t r = stream.extent(0);
  const View<float> norm = first_rows(norm_, r), neurons = first_rows(neurons_, r);
  const View<float> out = first_rows(branch_out_, r);
  kernels::layer_norm_forward(stream, parameters.norm_2, norm,
                              {mean_.view().slice(0, 0, r), deviation_.view().slice(0, 0, r)});
  kernels::linear_forward(norm, parameters.up, neurons);
  kernels::activation_forward(neurons, gpt_.config().activation, neurons);
  kernels::linear_forward(neurons, parameters.down, out);
  kernels::add(stream, out, stream);
}

void Variants::block(std::int64_t layer) {
  const BlockParameters& parameters = gpt_.parameters().block(layer);
  const std::int64_t a = gpt_.config().attention_width();
  kernels::layer_norm_forward(stream_, parameters.norm_1, norm_, {mean_, deviation_});
  kernels::linear_forward(norm_, parameters.query_key_value, query_key_value_);
  for (std::int64_t variant = 0; variant < count(); ++variant) {
    const auto own = [&](View<float> rows) {
      return rows.slice(0, begins_[variant], begins_[variant + 1]);
    };
    attend(layer, variant, own(query_key_value_).slice(1, 0, a), own(mixed_));
  }
  kernels::linear_forward(mixed_, parameters.projection, branch_out_);
  kernels::add(stream_, branch_out_, stream_);
  feed_forward(layer, stream_);
}

View<float> Variants::gather_last_rows() {
  for (std::int64_t variant = 0; variant < count(); ++variant) {
    std::copy_n(&stream_(begins_[variant + 1] - 1, 0), stream_.extent(1),
                &last_rows_.view()(variant, 0));
  }
  return last_rows_;
}

// In the last block only the last position of each variant attends; the others provide keys and
// values.
void Variants::last_block(std::int64_t layer) {
  const BlockParameters& parameters = gpt_.parameters().block(layer);
  const std::int64_t a = gpt_.config().attention_width(), b = count();
  kernels::layer_norm_forward(stream_, parameters.norm_1, norm_, {mean_, deviation_});
  kernels::linear_forward(norm_, parameters.query_key_value, query_key_value_);
  const View<float> mixed = first_rows(mixed_, b), out = first_rows(branch_out_, b);
  for (std::int64_t variant = 0; variant < b; ++variant) {
    const std::int64_t last = begins_[variant + 1] - 1;
    attend(layer, variant, query_key_value_.view().slice(0, last, last + 1).slice(1, 0, a),
           mixed.slice(0, variant, variant + 1));
  }
  kernels::linear_forward(mixed, parameters.projection, out);
  const View<float> last = gather_last_rows();
  kernels::add(last, out, last);
  feed_forward(layer, last);
}

Tensor<float> Variants::run(std::int64_t layer) {
  const std::int64_t layers = gpt_.config().layers, b = count();
  for (; layer + 1 < layers; ++layer) block(layer);
  if (layer < layers) {
    last_block(layer);
  } else {
    gather_last_rows();
  }
  kernels::layer_norm_forward(last_rows_, gpt_.parameters().final_norm(), first_rows(norm_, b),
                              {mean_.view().slice(0, 0, b), deviation_.view().slice(0, 0, b)});
  Tensor<float> logits(Shape{b, gpt_.config().vocabulary_size});
  gpt_.project(first_rows(norm_, b), logits);
  return logits;
}

}  // namespace heed
