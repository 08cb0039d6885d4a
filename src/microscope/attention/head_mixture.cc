#include "microscope/attention/head_mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace heed {
namespace {

void append(View<const float> rows, std::vector<float>& to) {
  if (rows.rank() == 1) {
    to.insert(to.end(), rows.data(), rows.data() + rows.extent(0));
    return;
  }
  for (std::int64_t i = 0; i < rows.extent(0); ++i) append(rows[i], to);
}

std::vector<float> copied(View<const float> rows) {
  std::vector<float> copy;
  copy.reserve(static_cast<std::size_t>(rows.size()));
  append(rows, copy);
  return copy;
}

}  // namespace

void HeadMixture::keep_query(View<const float> query) {
  heads_ = query.extent(0);
  head_size_ = query.extent(1);
  query_ = copied(query);
}

void HeadMixture::keep_keys(View<const float> keys) { keys_ = copied(keys); }
void HeadMixture::keep_values(View<const float> values) { values_ = copied(values); }

std::span<const float> HeadMixture::row(const std::vector<float>& rows, std::int64_t index) const {
  return std::span(rows).subspan(static_cast<std::size_t>(index * head_size_),
                                 static_cast<std::size_t>(head_size_));
}

std::vector<double> HeadMixture::pattern(std::int64_t head) const {
  const std::span<const float> query = row(query_, head);
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_size_));
  const std::int64_t keys = std::ssize(keys_) / (heads_ * head_size_);
  std::vector<double> shares;
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t s = 0; s < keys; ++s) {
    const std::span<const float> key = row(keys_, s * heads_ + head);
    shares.push_back(scale * std::inner_product(query.begin(), query.end(), key.begin(), 0.0));
    largest = std::max(largest, shares.back());
  }
  double sum = 0;
  for (double& share : shares) {
    share = std::exp(share - largest);
    sum += share;
  }
  for (double& share : shares) share /= sum;
  return shares;
}

std::span<const float> HeadMixture::value(std::int64_t source, std::int64_t head) const {
  return row(values_, source * heads_ + head);
}

}  // namespace heed
