#include "train/precision_trial.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "kernels/instruction_sets.h"
#include "model/gpt.h"
#include "model/parameter_count.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double pass_flops = 1.5e10;  // a tenth of a second where most machines are
constexpr std::int64_t least_rows = 128, most_rows = 2048;
constexpr std::int64_t longest_text = 512, longest_pair = 32;  // positions
constexpr int least_rounds = 3, most_rounds = 10;
constexpr double enough_seconds = 0.3;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One layer, with its share of the vocabulary: products have the run's shapes and proportions.
StackSpecification one_layer_of(const TrainSettings& settings) {
  StackSpecification shape = settings.model;
  shape.vocabulary_size = std::max<std::int64_t>(shape.vocabulary_size / shape.layers, 2);
  shape.end_of_text = -1;
  shape.layers = 1;
  auto& windows = shape.block.attention.mask.windows;
  if (!windows.empty()) windows = {windows.front()};
  return shape;
}

// Pairs of sentences are short, whatever the context.
std::int64_t positions_of(const TrainSettings& settings) {
  return settings.task == Task::pairs ? std::min(settings.model.context, longest_pair)
                                      : std::min(settings.sequence(), longest_text);
}

std::int64_t sequences_of(const TrainSettings& settings, const StackSpecification& shape) {
  const std::int64_t positions = positions_of(settings);
  StackSpecification pass = shape;
  pass.context = positions;
  const auto affordable =
      static_cast<std::int64_t>(pass_flops / model_cost(pass).train_flops_per_token);
  const std::int64_t rows =
      std::min(std::clamp(affordable, least_rows, most_rows), settings.tokens_per_step());
  return std::max<std::int64_t>(rows / positions, 1);
}

class TrialPass {
 public:
  explicit TrialPass(const TrainSettings& settings)
      : shape_(one_layer_of(settings)),
        gpt_(shape_),
        gradients_(shape_),
        tokens_(Shape{sequences_of(settings, shape_), positions_of(settings)}),
        buffers_(shape_, tokens_.shape()[0], tokens_.shape()[1],
                 settings.recompute ? Keep::residuals : Keep::every_block) {
    gpt_.parameters().initialize(settings.seed);
    for (std::int64_t i = 0; i < tokens_.size(); ++i) {
      tokens_[i] = static_cast<std::int32_t>(i * 7919 % shape_.vocabulary_size);
    }
  }

  double seconds(kernels::Precision precision) {
    gpt_.parameters().set_precision(precision);
    const Clock::time_point start = Clock::now();
    gpt_.loss_and_gradients(
        tokens_.view(), tokens_.view(),
        {.scale = 1.0F / static_cast<float>(tokens_.size()), .dropout = {.active = true}}, buffers_,
        gradients_);
    return seconds_since(start);
  }

 private:
  StackSpecification shape_;
  Gpt gpt_;
  GptGradients gradients_;
  Tensor<std::int32_t> tokens_;  // (sequences, positions)
  TrainingBuffers buffers_;
};

}  // namespace

PrecisionTrial try_precisions(const TrainSettings& settings, StopFlag stop) {
  TrialPass pass(settings);
  pass.seconds(kernels::Precision::f32);  // touches all memory
  PrecisionTrial best{std::numeric_limits<double>::infinity(),
                      std::numeric_limits<double>::infinity()};
  const Clock::time_point start = Clock::now();
  for (int round = 0; round < most_rounds && !stop_requested(stop); ++round) {
    if (round >= least_rounds && seconds_since(start) > enough_seconds) break;
    best.f32_seconds = std::min(best.f32_seconds, pass.seconds(kernels::Precision::f32));
    best.bf16_seconds = std::min(best.bf16_seconds, pass.seconds(kernels::Precision::bf16));
  }
  return best;
}

void choose_precision(TrainSettings& settings, StopFlag stop, TrainObserver& observer) {
  if (settings.precision) return;
  settings.precision = kernels::Precision::f32;
  if (!kernels::has_bf16_products()) return;
  const PrecisionTrial trial = try_precisions(settings, stop);
  if (stop_requested(stop)) return;
  if (trial.prefers_bf16()) settings.precision = kernels::Precision::bf16;
  observer.noticed(
      fmt::format("in a trial of this shape bf16 was {:.2f} times as fast as f32: the run takes {}",
                  trial.f32_seconds / trial.bf16_seconds, trial.prefers_bf16() ? "bf16" : "f32"));
}

}  // namespace heed
