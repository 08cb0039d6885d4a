#include "microscope/explain/vectors.h"

#include <Eigen/Dense>
#include <algorithm>
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
  const Eigen::RowVectorXd mean = centred.colwise().mean();
  centred.rowwise() -= mean;

  // The components follow from the eigenvectors of either Gram matrix; use the smaller.
  const bool by_rows = rows <= channels;
  const Matrix gram =
      by_rows ? Matrix(centred * centred.transpose()) : Matrix(centred.transpose() * centred);
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(gram);
  const double total = std::max(gram.trace(), 0.0);
  PrincipalPlane plane{.mean = {mean.begin(), mean.end()}};
  plane.points.resize(static_cast<std::size_t>(rows), {0.0, 0.0});
  plane.axes.fill(std::vector<double>(static_cast<std::size_t>(channels), 0.0));
  for (int axis = 0; axis < 2 && axis < gram.rows() && total > 0; ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    const Eigen::Index last = gram.rows() - 1 - axis;
    const double variance = std::max(solver.eigenvalues()(last), 0.0);
    plane.explained[at] = variance / total;
    Eigen::VectorXd component = solver.eigenvectors().col(last);
    if (by_rows) component = (centred.transpose() * component).eval();
    const double length = component.norm();
    if (length <= 0) continue;
    component /= length;
    Eigen::VectorXd along = centred * component;
    Eigen::Index largest = 0;
    along.cwiseAbs().maxCoeff(&largest);
    if (along(largest) < 0) {
      along = -along;
      component = -component;
    }
    std::ranges::copy(component, plane.axes[at].begin());
    for (std::int64_t i = 0; i < rows; ++i) {
      plane.points[static_cast<std::size_t>(i)][at] = along(i);
    }
  }
  return plane;
}

PlanePoint PrincipalPlane::point_of(std::span<const float> vector) const {
  check(vector.size() == mean.size(), "a vector as wide as those of the plane");
  PlanePoint point{};
  for (std::size_t axis = 0; axis < point.size(); ++axis) {
    for (std::size_t c = 0; c < vector.size(); ++c) {
      point[axis] += axes[axis][c] * (vector[c] - mean[c]);
    }
  }
  return point;
}

PlaneTurn turn_towards(std::span<const PlanePoint> points, std::span<const PlanePoint> others) {
  check(points.size() == others.size(), "each point has one to go to");
  double xx = 0, xy = 0, yx = 0, yy = 0;  // Σ other · pointᵀ
  for (std::size_t i = 0; i < points.size(); ++i) {
    xx += others[i][0] * points[i][0];
    xy += others[i][0] * points[i][1];
    yx += others[i][1] * points[i][0];
    yy += others[i][1] * points[i][1];
  }
  // The traces that the best rotation and the best reflection reach.
  const double rotated = std::hypot(xx + yy, yx - xy);
  const double reflected = std::hypot(xx - yy, xy + yx);
  if (rotated == 0 && reflected == 0) return {};
  if (rotated >= reflected) {
    const double cosine = (xx + yy) / rotated, sine = (yx - xy) / rotated;
    return {{cosine, -sine, sine, cosine}};
  }
  const double cosine = (xx - yy) / reflected, sine = (xy + yx) / reflected;
  return {{cosine, sine, sine, -cosine}};
}

}  // namespace heed
