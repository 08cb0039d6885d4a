#include "microscope/explain/singular_vectors.h"

#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>

#include "base/error.h"
#include "microscope/explain/head_weights.h"
#include "model/input_checks.h"

namespace heed {
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

SingularVectors singular_vectors(const Transformer& gpt, HeadCircuit circuit, std::int64_t layer,
                                 std::int64_t head) {
  require_sums_to_logits(gpt.specification(), "circuits of heads");
  const StackSpecification& config = gpt.specification();
  checked_layer(layer, config);
  checked_head(head, config);
  const LayerHeads heads(gpt, layer);
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
