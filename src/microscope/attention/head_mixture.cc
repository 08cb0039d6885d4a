#include "microscope/attention/head_mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "microscope/attention/visible_keys.h"

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

void HeadMixture::keep_query(View<const float> query) { query_ = copied(query); }
void HeadMixture::keep_keys(View<const float> keys) { keys_ = copied(keys); }
void HeadMixture::keep_values(View<const float> values) { values_ = copied(values); }

std::span<const float> HeadMixture::row(const std::vector<float>& rows, std::int64_t index) const {
  const std::int64_t size = attention_.head_size;
  return std::span(rows).subspan(static_cast<std::size_t>(index * size),
                                 static_cast<std::size_t>(size));
}

std::int64_t HeadMixture::shared_row(std::int64_t source, std::int64_t head) const {
  return source * attention_.key_value_heads + head / attention_.group_size();
}

std::vector<double> HeadMixture::pattern(std::int64_t layer, std::int64_t head) const {
  const std::span<const float> query = row(query_, head);
  const std::int64_t keys = std::ssize(keys_) / attention_.key_value_width();
  const VisibleKeys visible = visible_keys(attention_, layer, keys - 1, keys);
  std::vector<double> shares(static_cast<std::size_t>(keys), 0.0);
  const auto seen = std::span(shares).subspan(static_cast<std::size_t>(visible.begin),
                                              static_cast<std::size_t>(visible.count()));
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t s = visible.begin; s < visible.end; ++s) {
    const std::span<const float> key = row(keys_, shared_row(s, head));
    double& share = shares[static_cast<std::size_t>(s)];
    share = score_of(attention_, std::inner_product(query.begin(), query.end(), key.begin(), 0.0));
    largest = std::max(largest, share);
  }
  double sum = 0;
  for (double& share : seen) {
    share = std::exp(share - largest);
    sum += share;
  }
  for (double& share : seen) share /= sum;
  return shares;
}

std::span<const float> HeadMixture::value(std::int64_t source, std::int64_t head) const {
  return row(values_, shared_row(source, head));
}

}  // namespace heed
