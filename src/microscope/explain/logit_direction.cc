#include "microscope/explain/logit_direction.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "kernels/kernels.h"
#include "model/input_checks.h"

namespace heed {
namespace {

void require_token(std::int32_t token, const StackSpecification& config) {
  require(token >= 0 && token < config.vocabulary_size, ErrorCode::invalid_argument,
          "token {} is not in the vocabulary of {}", token, config.vocabulary_size);
}

void add_token(const Transformer& model, std::int32_t token, double sign, LogitDirection& to) {
  const Parameters& parameters = model.parameters();
  const NormWeights& norm = parameters.final_norm();
  const std::vector<float> row = kernels::multiplied_row(parameters.unembedding(), token);
  for (std::size_t c = 0; c < row.size(); ++c) {
    to.direction[c] += sign * norm.gain(c) * row[c];
    if (norm.bias.present()) to.constant += sign * norm.bias(c) * row[c];
  }
  if (parameters.unembedding().bias.present())
    to.constant += sign * parameters.unembedding().bias(token);
}

LogitDirection no_direction(const Transformer& model) {
  require_sums_to_logits(model.specification(), "a direction of logits");
  return {.direction = std::vector<double>(model.specification().channels, 0.0)};
}

// As a layer norm does.
LogitDirection without_mean(const Transformer& model, LogitDirection result) {
  if (model.specification().block.norm.kind == NormKind::rms) return result;
  const double mean = std::accumulate(result.direction.begin(), result.direction.end(), 0.0) /
                      static_cast<double>(result.direction.size());
  for (double& value : result.direction) value -= mean;
  return result;
}

template <class T>
double dot(std::span<const double> direction, std::span<const T> x) {
  check(x.size() == direction.size(), "a vector of the stream's width");
  return std::inner_product(direction.begin(), direction.end(), x.begin(), 0.0);
}

}  // namespace

void LogitQuestion::validate(const StackSpecification& config) const {
  require_token(token, config);
  if (against) require_token(*against, config);
}

double LogitDirection::project(std::span<const float> x) const { return dot<float>(direction, x); }
double LogitDirection::project(std::span<const double> x) const {
  return dot<double>(direction, x);
}

std::vector<double> LogitDirection::through(const LinearWeights& linear) const {
  const kernels::MultipliedWeight multiplied(linear);
  const View<const float> weight = multiplied.view();
  std::vector<double> sums(static_cast<std::size_t>(weight.extent(1)), 0.0);
  for (std::int64_t c = 0; c < weight.extent(0); ++c) {
    const double along = direction[static_cast<std::size_t>(c)];
    const float* const row = &weight(c, 0);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += along * row[i];
  }
  return sums;
}

LogitDirection logit_direction(const Transformer& model, const LogitQuestion& question) {
  LogitDirection result = no_direction(model);
  question.validate(model.specification());
  add_token(model, question.token, 1.0, result);
  if (question.against) add_token(model, *question.against, -1.0, result);
  return without_mean(model, std::move(result));
}

LogitDirection log_probability_direction(const Transformer& model, std::int32_t token,
                                         std::span<const double> probabilities) {
  LogitDirection result = no_direction(model);
  require_token(token, model.specification());
  check(std::ssize(probabilities) == model.specification().vocabulary_size,
        "every token has a probability");
  add_token(model, token, 1.0, result);
  for (std::size_t other = 0; other < probabilities.size(); ++other) {
    add_token(model, static_cast<std::int32_t>(other), -probabilities[other], result);
  }
  return without_mean(model, std::move(result));
}

namespace {

VocabularyProjection both_ends(std::span<const float> scores, std::int64_t top) {
  std::vector<std::int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = std::min<std::int64_t>(top, std::ssize(order));
  const auto first_of = [&](auto&& before) {
    std::partial_sort(order.begin(), order.begin() + count, order.end(),
                      [&](std::int32_t a, std::int32_t b) {
                        return scores[a] != scores[b] ? before(scores[a], scores[b]) : a < b;
                      });
    std::vector<ProjectedToken> tokens;
    for (std::int64_t i = 0; i < count; ++i) tokens.push_back({order[i], scores[order[i]]});
    return tokens;
  };
  return {.most = first_of(std::greater<>{}), .least = first_of(std::less<>{})};
}

// `table` (V, C)
std::vector<VocabularyProjection> project_through(View<const float> table,
                                                  View<const float> directions, std::int64_t top) {
  Tensor<float> scores(Shape{directions.extent(0), table.extent(0)});
  kernels::linear_forward(directions, {.weight = table}, scores);
  std::vector<VocabularyProjection> projections;
  for (std::int64_t row = 0; row < directions.extent(0); ++row) {
    projections.push_back(both_ends(scores.view()[row].span(), top));
  }
  return projections;
}

}  // namespace

std::vector<VocabularyProjection> project_to_logits(const Transformer& model,
                                                    View<const float> directions,
                                                    std::int64_t top) {
  require_sums_to_logits(model.specification(), "a projection to logits");
  const View<const float> gain = model.parameters().final_norm().gain;
  const bool centres = model.specification().block.norm.kind == NormKind::layer;
  Tensor<float> normed(directions.shape());
  for (std::int64_t row = 0; row < directions.extent(0); ++row) {
    double mean = 0;
    if (centres) {
      for (std::int64_t c = 0; c < gain.extent(0); ++c) mean += directions(row, c);
      mean /= static_cast<double>(gain.extent(0));
    }
    for (std::int64_t c = 0; c < gain.extent(0); ++c) {
      normed.view()(row, c) = static_cast<float>((directions(row, c) - mean) * gain(c));
    }
  }
  return project_through(model.parameters().restored(model.parameters().unembedding().weight),
                         normed, top);
}

std::vector<VocabularyProjection> project_to_embeddings(const Transformer& model,
                                                        View<const float> directions,
                                                        std::int64_t top) {
  return project_through(model.parameters().token_embedding(), directions, top);
}

}  // namespace heed
