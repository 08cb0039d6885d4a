#include "microscope/attention/word_walk.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>

#include "base/error.h"
#include "microscope/attention/visible_keys.h"
#include "model/input_checks.h"

namespace heed {
namespace {

std::vector<float> copy_row(const float* begin, std::int64_t size) { return {begin, begin + size}; }

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// One head's vector at one position of (1, T, heads, D).
std::vector<float> head_row(const Tensor<float>& values, std::int64_t position, std::int64_t head) {
  const View<const float> view = values.view();
  return copy_row(&view(0, position, head, 0), view.extent(3));
}

// One position's vector of (1, T, C).
std::vector<float> stream_row(const Tensor<float>& values, std::int64_t position) {
  const View<const float> view = values.view();
  return copy_row(&view(0, position, 0), view.extent(2));
}

// Softmax over the scores that are not masked.
void fill_shares(std::vector<KeyAnswer>& answers) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const KeyAnswer& answer : answers) {
    if (!answer.masked) largest = std::max(largest, answer.scaled);
  }
  double sum = 0;
  for (KeyAnswer& answer : answers) {
    answer.share = answer.masked ? 0.0 : std::exp(answer.scaled - largest);
    sum += answer.share;
  }
  for (KeyAnswer& answer : answers) answer.share /= sum;
}

std::vector<float> mix_values(const std::vector<KeyAnswer>& answers, std::int64_t head_size) {
  std::vector<double> sums(head_size, 0.0);
  for (const KeyAnswer& answer : answers) {
    for (std::int64_t i = 0; i < head_size; ++i) sums[i] += answer.share * answer.value[i];
  }
  return {sums.begin(), sums.end()};
}

// Where a pass has the queries and keys that attention reads.
struct ScoredPoints {
  PointKind query;
  PointKind key;

  explicit ScoredPoints(const StackSpecification& config) {
    const bool changed = config.block.attention.changes_query_and_key();
    query = changed ? PointKind::rotated_query : PointKind::query;
    key = changed ? PointKind::rotated_key : PointKind::key;
  }
};

// The columns of the output projection (C, A) that multiply this head's output.
std::vector<float> project_head(View<const float> weight, const std::vector<float>& output,
                                std::int64_t first_column) {
  std::vector<float> projected(weight.extent(0));
  for (std::int64_t channel = 0; channel < weight.extent(0); ++channel) {
    double sum = 0;
    for (std::size_t i = 0; i < output.size(); ++i) {
      sum += static_cast<double>(weight(channel, first_column + static_cast<std::int64_t>(i))) *
             output[i];
    }
    projected[channel] = static_cast<float>(sum);
  }
  return projected;
}

}  // namespace

double length(const std::vector<float>& vector) { return std::sqrt(dot(vector, vector)); }

std::vector<Point> word_walk_points(const StackSpecification& config, std::int64_t layer) {
  const ScoredPoints scored(config);
  std::vector<Point> points{{PointKind::residual_pre, layer},
                            {scored.query, layer},
                            {scored.key, layer},
                            {PointKind::value, layer},
                            {PointKind::mixed_values, layer},
                            {PointKind::attention_out, layer}};
  if (has_point(config, PointKind::residual_mid))
    points.push_back({PointKind::residual_mid, layer});
  return points;
}

WordWalk walk_word(const Transformer& model, const Capture& capture, std::int64_t layer,
                   std::int64_t head, std::int64_t position, std::span<const float> shares) {
  const StackSpecification& config = model.specification();
  checked_layer(layer, config);
  checked_head(head, config);
  const AttentionSpecification& attention = config.block.attention;
  const ScoredPoints scored(config);
  const Tensor<float>& keys = capture.at({scored.key, layer});
  const Tensor<float>& values = capture.at({PointKind::value, layer});
  const std::int64_t positions = keys.shape()[1];
  require(position >= 0 && position < positions, ErrorCode::invalid_argument,
          "position {} is not in a text of {} tokens", position, positions);

  WordWalk walk{.layer = layer,
                .head = head,
                .position = position,
                .head_size = config.head_size(),
                .heads = config.heads()};

  // 1. query
  walk.query = head_row(capture.at({scored.query, layer}), position, head);

  // 2. scores against every key, mask, softmax
  const VisibleKeys visible = visible_keys(attention, layer, position, positions);
  const std::int64_t shared = head / attention.group_size();
  for (std::int64_t s = 0; s < positions; ++s) {
    KeyAnswer answer{.position = s, .masked = !visible.contains(s)};
    answer.key = head_row(keys, s, shared);
    answer.value = head_row(values, s, shared);
    answer.product = dot(walk.query, answer.key);
    answer.scaled = score_of(attention, answer.product);
    answer.value_length = length(answer.value);
    walk.answers.push_back(std::move(answer));
  }
  fill_shares(walk.answers);
  for (KeyAnswer& answer : walk.answers) {
    if (!shares.empty()) answer.share = shares[static_cast<std::size_t>(answer.position)];
    answer.contribution_length = answer.share * answer.value_length;
  }

  // 3. weighted sum of the values
  walk.output = mix_values(walk.answers, config.head_size());

  // 4. concatenation with the other heads' outputs
  const View<const float> mixed = capture.at({PointKind::mixed_values, layer}).view();
  walk.concatenation = copy_row(&mixed(0, position, 0, 0), config.attention_width());

  // 5. output projection, added to the residual stream
  walk.head_projection =
      project_head(kernels::MultipliedWeight(model.parameters().block(layer).projection).view(),
                   walk.output, head * config.head_size());
  walk.attention_out = stream_row(capture.at({PointKind::attention_out, layer}), position);
  walk.residual_before = stream_row(capture.at({PointKind::residual_pre, layer}), position);
  if (has_point(config, PointKind::residual_mid)) {
    walk.residual_after = stream_row(capture.at({PointKind::residual_mid, layer}), position);
    return walk;
  }
  std::ranges::transform(walk.residual_before, walk.attention_out,
                         std::back_inserter(walk.residual_after), std::plus{});
  return walk;
}

WordWalk walk_word(const RecordedPass& pass, RecordedAttention& attention, std::int64_t layer,
                   std::int64_t head, std::int64_t position) {
  Capture capture(word_walk_points(pass.model().specification(), layer));
  pass.replay_layer(layer, capture);
  Tensor<float> shares;
  if (pass.edits_pattern(only_site, layer, head)) {
    shares = attention.region(only_site, {.layer = layer,
                                          .head = head,
                                          .query_begin = position,
                                          .query_end = position + 1,
                                          .key_end = pass.positions()});
  }
  return walk_word(pass.model(), capture, layer, head, position, shares.span());
}

}  // namespace heed
