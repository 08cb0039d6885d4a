#include "microscope/explain/head_circuits.h"

#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/threads.h"
#include "kernels/kernels.h"
#include "model/input_checks.h"

namespace heed {

LayerHeads::LayerHeads(const Transformer& model, std::int64_t layer)
    : attention_(model.specification().block.attention),
      query_key_value_(
          model.parameters().restored(model.parameters().block(layer).query_key_value.weight)),
      outputs_(Shape{model.specification().attention_width(), model.specification().channels}) {
  const View<const float> projection =
      model.parameters().restored(model.parameters().block(layer).projection.weight);  // (C, A)
  const View<float> outputs = outputs_.view();
  for (std::int64_t a = 0; a < outputs.extent(0); ++a) {
    for (std::int64_t c = 0; c < outputs.extent(1); ++c) outputs(a, c) = projection(c, a);
  }
  if (!attention_.query_key_norm) return;
  const BlockParameters& block = model.parameters().block(layer);
  const std::int64_t keys_end = attention_.query_width() + attention_.key_value_width();
  with_gains_ = Tensor<float>(query_key_value_.shape());
  for (std::int64_t row = 0; row < query_key_value_.extent(0); ++row) {
    const bool is_query = row < attention_.query_width();
    const bool of_all = attention_.head_norms == HeadNormExtent::all_heads;
    const std::int64_t own = is_query ? row : row - attention_.query_width();
    const std::int64_t d = of_all ? own : row % attention_.head_size;
    const float gain = is_query         ? block.query_norm.gain(d)
                       : row < keys_end ? block.key_norm.gain(d)
                                        : 1.0F;
    for (std::int64_t c = 0; c < query_key_value_.extent(1); ++c) {
      with_gains_.view()(row, c) = gain * query_key_value_(row, c);
    }
  }
  query_key_value_ = with_gains_;
}

View<const float> LayerHeads::all_queries() const {
  return query_key_value_.slice(0, 0, attention_.query_width());
}

View<const float> LayerHeads::all_keys() const {
  const std::int64_t begin = attention_.query_width();
  return query_key_value_.slice(0, begin, begin + attention_.key_value_width());
}

View<const float> LayerHeads::all_values() const {
  const std::int64_t end = attention_.projected_width();
  return query_key_value_.slice(0, end - attention_.key_value_width(), end);
}

View<const float> LayerHeads::head_rows(View<const float> rows, std::int64_t head) const {
  const std::int64_t size = attention_.head_size;
  return rows.slice(0, head * size, (head + 1) * size);
}

View<const float> LayerHeads::query(std::int64_t head) const {
  return head_rows(all_queries(), head);
}

View<const float> LayerHeads::key(std::int64_t head) const {
  return head_rows(all_keys(), head / attention_.group_size());
}

View<const float> LayerHeads::value(std::int64_t head) const {
  return head_rows(all_values(), head / attention_.group_size());
}

View<const float> LayerHeads::output(std::int64_t head) const { return head_rows(outputs_, head); }

namespace {

// x·yᵀ of rows x (M, C) and y (N, C): (M, N).
Tensor<float> products(View<const float> x, View<const float> y) {
  Tensor<float> result(Shape{x.extent(0), y.extent(0)});
  kernels::linear_forward(x, {.weight = y}, result);
  return result;
}

// Norms of a head's low-rank product leftᵀ·right. With Gram matrices
// G = left·leftᵀ and R = right·rightᵀ (D, D), ‖leftᵀ·right‖² = Σ G ⊙ R.
struct Factors {
  View<const float> left;   // (D, C)
  View<const float> right;  // (D, C)
};

double squared_norm(const Tensor<float>& left_gram, const Tensor<float>& right_gram) {
  double sum = 0;
  for (std::int64_t i = 0; i < left_gram.size(); ++i) {
    sum += static_cast<double>(left_gram[i]) * right_gram[i];
  }
  return sum;
}

// ‖aᵀ·M·b‖² = tr(G·M·R·Mᵀ) = Σ (G·M) ⊙ (M·R), for G = a·aᵀ, R = b·bᵀ and M (D, D); R is symmetric.
double squared_norm_through(const Tensor<float>& left_gram, View<const float> middle,
                            const Tensor<float>& right_gram) {
  const std::int64_t size = middle.extent(0);
  std::vector<double> left(static_cast<std::size_t>(size));   // a row of G·M
  std::vector<double> right(static_cast<std::size_t>(size));  // a row of M·R
  double sum = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    std::fill(left.begin(), left.end(), 0.0);
    std::fill(right.begin(), right.end(), 0.0);
    for (std::int64_t k = 0; k < size; ++k) {
      const double of_gram = left_gram[i * size + k];
      const double of_middle = middle(i, k);
      const float* const middle_row = &middle(k, 0);
      const float* const gram_row = right_gram.data() + k * size;
      for (std::int64_t j = 0; j < size; ++j) {
        left[j] += of_gram * middle_row[j];
        right[j] += of_middle * gram_row[j];
      }
    }
    for (std::int64_t j = 0; j < size; ++j) sum += left[j] * right[j];
  }
  return sum;
}

// The reader's factors: W = leftᵀ·right, where `left` multiplies the earlier head's output.
Factors reader(const LayerHeads& layer, std::int64_t head, CompositionKind kind) {
  switch (kind) {
    case CompositionKind::query: return {layer.query(head), layer.key(head)};
    case CompositionKind::key: return {layer.key(head), layer.query(head)};
    case CompositionKind::value: break;
  }
  return {layer.value(head), layer.output(head)};
}

View<const float> all_readers(const LayerHeads& layer, CompositionKind kind) {
  switch (kind) {
    case CompositionKind::query: return layer.all_queries();
    case CompositionKind::key: return layer.all_keys();
    case CompositionKind::value: break;
  }
  return layer.all_values();
}

// Per-head quantities, as writer and as reader.
struct HeadNorms {
  Tensor<float> value_gram;  // (D, D): of the writer's W_OV = valueᵀ·output, the side that reads
  double writer_norm = 0;    // ‖W_OV‖
  Tensor<float> right_gram;  // (D, D): of the reader's right factor
  double reader_norm = 0;    // ‖W‖
};

HeadNorms head_norms(const LayerHeads& layer, std::int64_t head, CompositionKind kind) {
  HeadNorms norms;
  norms.value_gram = products(layer.value(head), layer.value(head));
  norms.writer_norm =
      std::sqrt(squared_norm(norms.value_gram, products(layer.output(head), layer.output(head))));
  const Factors factors = reader(layer, head, kind);
  norms.right_gram = products(factors.right, factors.right);
  norms.reader_norm =
      std::sqrt(squared_norm(products(factors.left, factors.left), norms.right_gram));
  return norms;
}

}  // namespace

Tensor<float> composition_scores(const Transformer& model, CompositionKind kind) {
  require_sums_to_logits(model.specification(), "composition of heads");
  const StackSpecification& config = model.specification();
  const std::int64_t heads = config.heads();
  const std::int64_t size = config.head_size();
  const std::int64_t group = config.block.attention.group_size();
  std::vector<LayerHeads> layers;
  std::vector<HeadNorms> norms;
  for (std::int64_t l = 0; l < config.layers; ++l) {
    layers.emplace_back(model, l);
    for (std::int64_t h = 0; h < heads; ++h) norms.push_back(head_norms(layers[l], h, kind));
  }
  Tensor<float> scores(Shape{config.layers, heads, config.layers, heads});
  for (std::int64_t writer = 0; writer < config.layers; ++writer) {
    for (std::int64_t later = writer + 1; later < config.layers; ++later) {
      // Every head's output factor times every reader's left factor: (A, A), or (A, K) where keys
      // or values read, with one D x D block for each pair.
      const Tensor<float> middle =
          products(layers[writer].all_outputs(), all_readers(layers[later], kind));
      parallel_items(heads * heads, [&](std::int64_t pair) {
        const std::int64_t from = pair / heads;
        const std::int64_t to = pair % heads;
        const HeadNorms& a = norms[static_cast<std::size_t>(writer * heads + from)];
        const HeadNorms& b = norms[static_cast<std::size_t>(later * heads + to)];
        const std::int64_t read = kind == CompositionKind::query ? to : to / group;
        const View<const float> block = middle.view()
                                            .slice(0, from * size, (from + 1) * size)
                                            .slice(1, read * size, (read + 1) * size);
        const double composed = std::sqrt(squared_norm_through(a.value_gram, block, b.right_gram));
        const double apart = a.writer_norm * b.reader_norm;
        scores.view()(writer, from, later, to) =
            apart > 0 ? static_cast<float>(composed / apart) : 0.0F;
      });
    }
  }
  return scores;
}

namespace {

// Rows (D, C) as a matrix (C, D).
Eigen::MatrixXd columns_of(View<const float> rows) {
  Eigen::MatrixXd matrix(rows.extent(1), rows.extent(0));
  for (std::int64_t d = 0; d < rows.extent(0); ++d) {
    for (std::int64_t c = 0; c < rows.extent(1); ++c) matrix(c, d) = rows(d, c);
  }
  return matrix;
}

// matrix (C, D) = basis (C, K) · triangle (K, D), K the smaller of C and D.
struct Factored {
  Eigen::MatrixXd basis;
  Eigen::MatrixXd triangle;
};

Factored factor(const Eigen::MatrixXd& matrix) {
  const Eigen::Index rank = std::min(matrix.rows(), matrix.cols());
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(matrix);
  return {qr.householderQ() * Eigen::MatrixXd::Identity(matrix.rows(), rank),
          qr.matrixQR().topRows(rank).template triangularView<Eigen::Upper>()};
}

Tensor<float> rows_of(const Eigen::MatrixXd& columns) {
  Tensor<float> rows(Shape{columns.cols(), columns.rows()});
  for (Eigen::Index i = 0; i < columns.cols(); ++i) {
    for (Eigen::Index c = 0; c < columns.rows(); ++c) {
      rows.view()(i, c) = static_cast<float>(columns(c, i));
    }
  }
  return rows;
}

}  // namespace

SingularVectors singular_vectors(const Transformer& model, HeadCircuit circuit, std::int64_t layer,
                                 std::int64_t head) {
  require_sums_to_logits(model.specification(), "circuits of heads");
  const StackSpecification& config = model.specification();
  checked_layer(layer, config);
  checked_head(head, config);
  const LayerHeads heads(model, layer);
  const bool asks = circuit == HeadCircuit::query_key;
  const Factored left = factor(columns_of(asks ? heads.query(head) : heads.value(head)));
  const Factored right = factor(columns_of(asks ? heads.key(head) : heads.output(head)));
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(left.triangle * right.triangle.transpose(),
                                              Eigen::ComputeThinU | Eigen::ComputeThinV);
  Eigen::MatrixXd left_vectors = left.basis * svd.matrixU();
  Eigen::MatrixXd right_vectors = right.basis * svd.matrixV();
  for (Eigen::Index i = 0; i < left_vectors.cols(); ++i) {
    Eigen::Index largest = 0;
    left_vectors.col(i).cwiseAbs().maxCoeff(&largest);
    if (left_vectors(largest, i) >= 0) continue;
    left_vectors.col(i) *= -1;
    right_vectors.col(i) *= -1;
  }
  const Eigen::VectorXd& values = svd.singularValues();
  return {.values = {values.data(), values.data() + values.size()},
          .left = rows_of(left_vectors),
          .right = rows_of(right_vectors)};
}

}  // namespace heed
