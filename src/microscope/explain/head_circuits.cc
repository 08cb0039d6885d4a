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

// left·rightᵀ = U·diag(S)·Vᵀ, by QR of both factors and an SVD of the product of their triangles.
struct ProductVectors {
  Eigen::MatrixXd u;
  Eigen::VectorXd s;
  Eigen::MatrixXd v;
};

ProductVectors vectors_of_product(const Eigen::MatrixXd& left, const Eigen::MatrixXd& right) {
  const Factored l = factor(left), r = factor(right);
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(l.triangle * r.triangle.transpose(),
                                              Eigen::ComputeThinU | Eigen::ComputeThinV);
  return {l.basis * svd.matrixU(), svd.singularValues(), r.basis * svd.matrixV()};
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
  ProductVectors found =
      vectors_of_product(columns_of(asks ? heads.query(head) : heads.value(head)),
                         columns_of(asks ? heads.key(head) : heads.output(head)));
  for (Eigen::Index i = 0; i < found.u.cols(); ++i) {
    Eigen::Index largest = 0;
    found.u.col(i).cwiseAbs().maxCoeff(&largest);
    if (found.u(largest, i) >= 0) continue;
    found.u.col(i) *= -1;
    found.v.col(i) *= -1;
  }
  return {.values = {found.s.data(), found.s.data() + found.s.size()},
          .left = rows_of(found.u),
          .right = rows_of(found.v)};
}

namespace {

// A layer's weights of attention, which the heads of a refactored model write to.
struct LayerFactors {
  View<float> query_key_value;  // (3A, C)
  View<float> input_bias;       // (3A), or absent
  View<float> projection;       // (C, A)
  View<float> output_bias;      // (C), or absent
  std::int64_t width;           // A
  std::int64_t size;            // D

  LayerFactors(Transformer& model, std::int64_t layer)
      : width(model.specification().attention_width()), size(model.specification().head_size()) {
    const auto find = [&](Role role, Part part) {
      const ParameterId id{role, part, layer};
      return model.parameters().has(id) ? model.parameters().tensor(id) : View<float>{};
    };
    query_key_value = find(Role::query_key_value, Part::weight);
    input_bias = find(Role::query_key_value, Part::bias);
    projection = find(Role::attention_output, Part::weight);
    output_bias = find(Role::attention_output, Part::bias);
  }

  // The rows [first, first + D) that read the stream as columns (C, D), with their biases below.
  Eigen::MatrixXd readers(std::int64_t first, bool with_bias) const {
    Eigen::MatrixXd columns = columns_of(query_key_value.slice(0, first, first + size));
    if (!with_bias || !input_bias.present()) return columns;
    columns.conservativeResize(columns.rows() + 1, Eigen::NoChange);
    for (std::int64_t d = 0; d < size; ++d) columns(columns.rows() - 1, d) = input_bias(first + d);
    return columns;
  }
  // Columns that the product's rank leaves out are zero.
  void set_readers(std::int64_t first, const Eigen::MatrixXd& columns) const {
    const std::int64_t channels = query_key_value.extent(1);
    for (std::int64_t d = 0; d < size; ++d) {
      const auto value = [&](std::int64_t row) {
        return d < columns.cols() ? static_cast<float>(columns(row, d)) : 0.0F;
      };
      for (std::int64_t c = 0; c < channels; ++c) query_key_value(first + d, c) = value(c);
      if (columns.rows() > channels) input_bias(first + d) = value(channels);
    }
  }

  Eigen::MatrixXd writers(std::int64_t head) const {  // (C, D)
    Eigen::MatrixXd columns(projection.extent(0), size);
    for (std::int64_t c = 0; c < projection.extent(0); ++c) {
      for (std::int64_t d = 0; d < size; ++d) columns(c, d) = projection(c, head * size + d);
    }
    return columns;
  }
  void set_writers(std::int64_t head, const Eigen::MatrixXd& columns) const {
    for (std::int64_t c = 0; c < projection.extent(0); ++c) {
      for (std::int64_t d = 0; d < size; ++d) {
        projection(c, head * size + d) =
            d < columns.cols() ? static_cast<float>(columns(c, d)) : 0.0F;
      }
    }
  }
  // Rows of a pattern sum to one: biases of values reach the projection unchanged.
  void move_value_bias(std::int64_t head) const {
    const std::int64_t first = 2 * width + head * size;
    Eigen::VectorXd bias(size);
    for (std::int64_t d = 0; d < size; ++d) bias(d) = input_bias(first + d);
    const Eigen::VectorXd written = writers(head) * bias;
    for (std::int64_t c = 0; c < projection.extent(0); ++c) {
      output_bias(c) = static_cast<float>(output_bias(c) + written(c));
    }
    for (std::int64_t d = 0; d < size; ++d) input_bias(first + d) = 0;
  }
};

}  // namespace

void refactor_heads(Transformer& model) {
  const StackSpecification& config = model.specification();
  const AttentionSpecification& attention = config.block.attention;
  require(
      !attention.changes_query_and_key() && attention.group_size() == 1, ErrorCode::unsupported,
      "the heads of this model cannot be refactored: it turns or norms its queries and keys, or "
      "shares keys between heads");
  require(
      !attention.query_bias || attention.output_bias, ErrorCode::unsupported,
      "the heads of this model cannot be refactored: its values have biases, and what attention "
      "writes has none that could take them");
  parallel_items(config.layers, [&](std::int64_t layer) {
    const LayerFactors factors(model, layer);
    for (std::int64_t head = 0; head < config.heads(); ++head) {
      const std::int64_t query = head * factors.size, key = query + factors.width,
                         value = key + factors.width;
      const ProductVectors asked =
          vectors_of_product(factors.readers(query, true), factors.readers(key, true));
      const Eigen::VectorXd root = asked.s.cwiseSqrt();
      factors.set_readers(query, asked.u * root.asDiagonal());
      factors.set_readers(key, asked.v * root.asDiagonal());
      const ProductVectors carried =
          vectors_of_product(factors.readers(value, false), factors.writers(head));
      if (factors.input_bias.present()) factors.move_value_bias(head);
      factors.set_readers(value, carried.u);
      factors.set_writers(head, carried.v * carried.s.asDiagonal());
    }
  });
}

}  // namespace heed
