#include "microscope/explain/logit_direction.h"

#include <numeric>

#include "base/error.h"
#include "model/input_checks.h"

namespace heed {
namespace {

void require_token(std::int32_t token, const StackSpecification& config) {
  require(token >= 0 && token < config.vocabulary_size, ErrorCode::invalid_argument,
          "token {} is not in the vocabulary of {}", token, config.vocabulary_size);
}

void add_token(const Transformer& gpt, std::int32_t token, double sign, LogitDirection& to) {
  const Parameters& parameters = gpt.parameters();
  const NormWeights& norm = parameters.final_norm();
  const std::vector<float> row = kernels::multiplied_row(parameters.unembedding(), token);
  for (std::size_t c = 0; c < row.size(); ++c) {
    to.direction[c] += sign * norm.gain(c) * row[c];
    if (norm.bias.present()) to.constant += sign * norm.bias(c) * row[c];
  }
  if (parameters.unembedding().bias.present())
    to.constant += sign * parameters.unembedding().bias(token);
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

LogitDirection logit_direction(const Transformer& gpt, const LogitQuestion& question) {
  require_sums_to_logits(gpt.specification(), "a direction of logits");
  question.validate(gpt.specification());
  LogitDirection result{.direction = std::vector<double>(gpt.specification().channels, 0.0)};
  add_token(gpt, question.token, 1.0, result);
  if (question.against) add_token(gpt, *question.against, -1.0, result);
  if (gpt.specification().block.norm.kind == NormKind::rms) return result;
  const double mean = std::accumulate(result.direction.begin(), result.direction.end(), 0.0) /
                      static_cast<double>(result.direction.size());
  for (double& value : result.direction) value -= mean;
  return result;
}

}  // namespace heed
