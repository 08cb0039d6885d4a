#include "microscope/explain/vectors.h"

#include <Eigen/Dense>
#include <cmath>
#include <cstddef>

#include "base/error.h"

namespace heed {

VectorComparison compare_vectors(std::span<const float> first, std::span<const float> second) {
  check(first.size() == second.size(), "the vectors have the same width");
  double product = 0, first_square = 0, second_square = 0, distance = 0;
  for (std::size_t c = 0; c < first.size(); ++c) {
    const double a = first[c], b = second[c];
    product += a * b;
    first_square += a * a;
    second_square += b * b;
    distance += (a - b) * (a - b);
  }
  return {.cosine = product / std::sqrt(first_square * second_square),
          .distance = std::sqrt(distance),
          .first_length = std::sqrt(first_square),
          .second_length = std::sqrt(second_square)};
}

PrincipalPlane principal_plane(View<const float> vectors) {
  require(vectors.rank() == 2 && vectors.extent(0) >= 1, ErrorCode::invalid_argument,
          "there are no vectors to project");
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic>;
  const std::int64_t rows = vectors.extent(0), channels = vectors.extent(1);
  Matrix centred(rows, channels);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t c = 0; c < channels; ++c) centred(i, c) = vectors(i, c);
  }
  centred.rowwise() -= centred.colwise().mean().eval();

  // The components follow from the eigenvectors of either Gram matrix; use the smaller.
  const bool by_rows = rows <= channels;
  const Matrix gram =
      by_rows ? Matrix(centred * centred.transpose()) : Matrix(centred.transpose() * centred);
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(gram);
  const double total = std::max(gram.trace(), 0.0);
  PrincipalPlane plane;
  plane.points.resize(static_cast<std::size_t>(rows), {0.0, 0.0});
  for (int axis = 0; axis < 2 && axis < gram.rows() && total > 0; ++axis) {
    const Eigen::Index last = gram.rows() - 1 - axis;
    const double variance = std::max(solver.eigenvalues()(last), 0.0);
    plane.explained[static_cast<std::size_t>(axis)] = variance / total;
    Eigen::VectorXd along =
        by_rows ? Eigen::VectorXd(solver.eigenvectors().col(last) * std::sqrt(variance))
                : Eigen::VectorXd(centred * solver.eigenvectors().col(last));
    Eigen::Index largest = 0;
    along.cwiseAbs().maxCoeff(&largest);
    if (along(largest) < 0) along = -along;
    for (std::int64_t i = 0; i < rows; ++i) {
      plane.points[static_cast<std::size_t>(i)][static_cast<std::size_t>(axis)] = along(i);
    }
  }
  return plane;
}

}  // namespace heed
