#include "engine/bench/training_rates.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include "base/error.h"
#include "base/threads.h"
#include "engine/bench/benchmark.h"
#include "engine/bench/measurer.h"
#include "engine/bench/work_cost.h"
#include "kernels/kernels.h"
#include "model/parameter_count.h"
#include "model/transformer.h"
#include "tensor/tensor.h"
#include "train/settings.h"

namespace heed {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t measured_layers = 2;
constexpr std::int64_t max_block_parameters = std::int64_t{1} << 25;
constexpr std::int64_t min_positions = 128, max_positions = 2048;
constexpr double max_passes = 10;  // that one sequence may cost, in passes of pass_flops
constexpr std::int64_t min_vocabulary = 4096;                // of larger ones
constexpr std::int64_t max_numbers = std::int64_t{1} << 24;  // in each array of AdamW
constexpr int min_rounds = 3, max_rounds = 100;

double elapsed_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::int64_t block_parameters(const StackSpecification& shape) {
  const ParameterCount count = count_parameters(shape);
  return (count.attention_total + count.feed_forward_total) / shape.layers;
}

// Half as many heads, all widths with them; false where that is not possible.
bool halve(StackSpecification& shape) {
  AttentionSpecification& attention = shape.block.attention;
  if (attention.query_heads % 2 != 0 || shape.channels % 2 != 0 ||
      shape.block.feed_forward.width % 2 != 0) {
    return false;
  }
  if (attention.key_value_heads % 2 == 0) attention.key_value_heads /= 2;
  attention.query_heads /= 2;
  shape.channels /= 2;
  shape.block.feed_forward.width /= 2;
  return attention.query_heads % attention.key_value_heads == 0;
}

// A few blocks with their share of the vocabulary, and positions that one pass can afford.
StackSpecification measured_shape(const TrainSettings& settings,
                                  const RateMeasurement& measurement) {
  StackSpecification shape = settings.model;
  const std::int64_t layers = std::min(shape.layers, measured_layers);
  shape.vocabulary_size =
      std::min(shape.vocabulary_size,
               std::max(shape.vocabulary_size * layers / shape.layers, min_vocabulary));
  shape.end_of_text = -1;
  shape.layers = layers;
  auto& windows = shape.block.attention.mask.windows;
  if (!windows.empty()) windows.resize(static_cast<std::size_t>(layers));
  while (block_parameters(shape) > max_block_parameters) {
    StackSpecification narrower = shape;
    if (!halve(narrower)) break;
    shape = narrower;
  }
  shape.context = std::min(settings.sequence(), max_positions);
  const double affordable =
      max_passes * measurement.pass_flops / model_cost(shape).train_flops_per_token;
  shape.context =
      std::min(shape.context, std::max(static_cast<std::int64_t>(affordable), min_positions));
  return shape;
}

// As many of the run's sequences as are affordable.
std::int64_t measured_sequences(const StackSpecification& shape,
                                const RateMeasurement& measurement) {
  const double sequence = real(shape.context) * model_cost(shape).train_flops_per_token;
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(measurement.pass_flops / sequence), 1,
                                  std::max<std::int64_t>(measurement.sequences, 1));
}

// The times of the parts of a pass.
struct PassSeconds {
  std::vector<double> forward;   // up to the final norm
  std::vector<double> backward;  // from there
  std::vector<double> whole;     // both, with the unembedding and the loss between them
};

class MeasuredPass {
 public:
  MeasuredPass(const TrainSettings& settings, const RateMeasurement& measurement)
      : shape_(measured_shape(settings, measurement)),
        transformer_({.stacks = {shape_}}),
        gradients_({.stacks = {shape_}}),
        tokens_(Shape{measured_sequences(shape_, measurement), shape_.context}),
        buffers_(shape_, tokens_.shape()[0], shape_.context,
                 settings.recompute ? Keep::residuals : Keep::every_block) {
    transformer_.parameters().initialize(settings.seed);
    transformer_.parameters().set_precision(*settings.precision);
    for (std::int64_t i = 0; i < tokens_.size(); ++i) {
      tokens_[i] = static_cast<std::int32_t>(i * 7919 % shape_.vocabulary_size);
    }
  }

  double tokens() const { return real(tokens_.size()); }
  const StackSpecification& shape() const { return shape_; }

  void run(PassSeconds& seconds) {
    const DropoutPlan dropout{.active = true};
    const Pass pass{.sequences = {tokens_.shape()[0], shape_.context}, .dropout = dropout};
    Clock::time_point start = Clock::now();
    transformer_.loss_and_gradients(
        tokens_.view(), tokens_.view(),
        {.scale = 1.0F / static_cast<float>(tokens_.size()), .dropout = dropout}, buffers_,
        gradients_);
    seconds.whole.push_back(elapsed_since(start));
    start = Clock::now();
    transformer_.forward(tokens_.view(), pass, buffers_.activations);
    seconds.forward.push_back(elapsed_since(start));
    // The gradient that the loss left there is as good as any.
    start = Clock::now();
    transformer_.backward(tokens_.view(), pass, buffers_.activations, buffers_.gradients,
                          &gradients_);
    seconds.backward.push_back(elapsed_since(start));
  }

 private:
  StackSpecification shape_;
  Transformer transformer_;
  Gradients gradients_;
  Tensor<std::int32_t> tokens_;  // (sequences, positions)
  TrainingBuffers buffers_;
};

// Calls `work` until there are enough measurements.
void measure_repeatedly(const RateMeasurement& measurement, const char* what,
                        const std::function<void()>& work) {
  work();  // touches all memory
  const Clock::time_point start = Clock::now();
  for (int round = 0; round < max_rounds; ++round) {
    require(!stop_requested(measurement.stop), ErrorCode::interrupted,
            "the measurement of this machine was interrupted");
    if (round >= min_rounds && elapsed_since(start) > measurement.seconds) break;
    if (measurement.progress) measurement.progress({what, round, min_rounds});
    work();
  }
}

// Without the first, which touched all memory.
double typical(std::vector<double> seconds) {
  seconds.erase(seconds.begin());
  return median(std::move(seconds));
}

}  // namespace

double measure_memory_rate(std::int64_t parameters, const RateMeasurement& measurement) {
  const ScopedThreadCount threads(measurement.threads);
  const std::int64_t size = std::min(parameters, max_numbers);
  Tensor<float> arrays[4] = {Tensor<float>(Shape{size}), Tensor<float>(Shape{size}),
                             Tensor<float>(Shape{size}), Tensor<float>(Shape{size})};
  std::ranges::fill(arrays[1].span(), 1e-3F);
  std::vector<double> seconds;
  double norm = 0;
  measure_repeatedly(measurement, "measuring AdamW", [&] {
    const Clock::time_point start = Clock::now();
    norm += kernels::squared_norm(arrays[1].span());
    kernels::adamw_step({.parameters = arrays[0].span(),
                         .gradients = arrays[1].span(),
                         .first_moment = arrays[2].span(),
                         .second_moment = arrays[3].span()},
                        kernels::AdamWStep<float>{.learning_rate = 1e-4F,
                                                  .beta1 = 0.9F,
                                                  .beta2 = 0.95F,
                                                  .epsilon = 1e-8F,
                                                  .weight_decay = 0.1F,
                                                  .gradient_scale = 1.0F,
                                                  .step = 1});
    seconds.push_back(elapsed_since(start));
  });
  check(norm > 0, "gradients that are not zero have a norm");
  constexpr double passes = 8;  // gradients read for their norm; AdamW's seven
  return passes * sizeof(float) * real(size) / typical(std::move(seconds)) / measurement.threads;
}

TrainingRates measure_training_rates(TrainSettings& settings, const RateMeasurement& measurement) {
  const ScopedThreadCount threads(measurement.threads);
  settle_precision(settings);
  MeasuredPass pass(settings, measurement);
  PassSeconds seconds;
  measure_repeatedly(measurement, "measuring forward and backward", [&] { pass.run(seconds); });

  const StackSpecification& shape = pass.shape();
  const ParameterCount count = count_parameters(shape);
  const double block = pass.tokens() * (2 * real(count.attention_total + count.feed_forward_total) +
                                        attention_flops_per_token(shape, shape.context));
  const double ends = pass.tokens() * 6 * real(shape.vocabulary_size) * real(shape.channels);
  const double forward = typical(seconds.forward), backward = typical(seconds.backward);
  const double between = typical(seconds.whole) - forward - backward;
  // Backward of settings that recompute does a forward pass, too.
  const double back = settings.recompute ? std::max(backward - forward, forward) : backward;
  TrainingRates rates{
      .block_forward = block / forward / measurement.threads,
      .block_backward = 2 * block / back / measurement.threads,
      // Unembeddings of a few characters can take less time than timings scatter.
      .ends = ends / std::max(between, 1e-3 * (forward + backward)) / measurement.threads};
  rates.memory = measure_memory_rate(count_parameters(settings.model).total, measurement);
  return rates;
}

}  // namespace heed
