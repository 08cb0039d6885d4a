// The suites that run a model: training, prompts and decoding.
#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/random.h"
#include "engine/bench/measurer.h"
#include "engine/bench/work_cost.h"
#include "engine/loaded_model.h"
#include "generate/decoding_graph.h"
#include "kernels/elements.h"
#include "model/input_checks.h"
#include "model/parameter_count.h"
#include "train/optimizer.h"

namespace heed {
namespace {

using kernels::PeakLoop;
using kernels::WeightFormat;

constexpr std::uint64_t seed = 1;

// Loads a model, or creates one with random weights and a context of at least `positions`.
Transformer make_transformer(const BenchmarkOptions& options, std::int64_t positions,
                             std::int64_t ModelCost::*memory) {
  if (!options.model.empty()) return load_model(options.model).transformer;
  StackSpecification config = find_stack_config(options.config);
  config.context = std::max(config.context, positions);
  require_memory(options.config, model_cost(config).*memory);
  Transformer transformer({.stacks = {config}});
  transformer.parameters().initialize(seed);
  transformer.place(default_device());
  return transformer;
}

// Prepares weights as they are to be measured, and returns their format.
WeightFormat prepare_measured(Parameters& parameters, const BenchmarkOptions& options) {
  if (!options.uses_blocks || !parameters.are_in_blocks()) parameters.prepare(options.dtype);
  return parameters.prepared_format();
}

BenchmarkReport describe(const BenchmarkOptions& options, const StackSpecification& config) {
  return {.model = options.model.empty() ? options.config : options.model,
          .parameters = count_parameters(config).total};
}

Tensor<std::int32_t> random_tokens(const StackSpecification& config, const Shape& shape) {
  Tensor<std::int32_t> tokens(shape);
  RandomStream random(seed, 1);
  for (std::int32_t& token : tokens.span()) {
    token =
        static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(config.vocabulary_size)));
  }
  return tokens;
}

// What Session does for one sequence, for any number of them.
class BatchReader {
 public:
  BatchReader(const Transformer& transformer, std::int64_t batch, std::int64_t capacity,
              CacheType cache_type)
      : transformer_(transformer),
        batch_(batch),
        cache_(transformer.make_cache(batch, capacity, cache_type)),
        step_(transformer.specification(), batch, 1, Keep::one_block, 0, transformer.device()),
        last_(Shape{batch, transformer.specification().channels}, transformer.device()),
        logits_(Shape{batch, transformer.specification().vocabulary_size}),
        graph_(transformer) {}

  // Appends tokens (B, T) and computes the logits of the last position.
  void read(View<const std::int32_t> tokens) {
    const std::int64_t positions = tokens.extent(1);
    if (positions == 1) {
      const Sequences next = Sequences::next_of(cache_);
      if (graph_.compute({.tokens = tokens.span(), .sequences = next}, step_, logits_)) return;
      forward(tokens, step_, kernels::decoding_step);
      return transformer_.project(step_.final_norm(), logits_, kernels::decoding_step);
    }
    if (!prompt_ || prompt_->positions() != positions) {
      prompt_.emplace(transformer_.specification(), batch_, positions, Keep::one_block, 0,
                      transformer_.device());
    }
    forward(tokens, *prompt_, positions);
    for (std::int64_t row = 0; row < batch_; ++row) {
      kernels::copy(prompt_->final_norm()[(row + 1) * positions - 1], last_.view()[row]);
    }
    transformer_.project(last_, logits_);
  }

  // Appends tokens (B, T) and computes the logits (B·T, V) of all positions.
  void read(View<const std::int32_t> tokens, View<float> logits) {
    if (!prompt_)
      prompt_.emplace(transformer_.specification(), batch_, tokens.extent(1), Keep::one_block, 0,
                      transformer_.device());
    forward(tokens, *prompt_, tokens.extent(1));
    transformer_.project(prompt_->final_norm(), logits);
  }

  void truncate(std::int64_t length) { cache_.truncate(length); }

 private:
  void forward(View<const std::int32_t> tokens, const StackActivations& activations,
               std::int64_t length) {
    transformer_.forward(
        tokens, {.sequences = Sequences::next_of(cache_, tokens.extent(1)), .length = length},
        activations);
  }

  const Transformer& transformer_;
  std::int64_t batch_;
  KeyValueCache cache_;
  std::optional<StackActivations> prompt_;
  StackActivations step_;
  Tensor<float> last_;    // (B, C)
  Tensor<float> logits_;  // (B, V)
  DecodingGraph graph_;
};

// All memory of a training step.
class TrainingWork {
 public:
  TrainingWork(Transformer& transformer, std::int64_t batch, std::int64_t positions)
      : transformer_(transformer),
        settings_{.model = transformer.specification()},
        tokens_(random_tokens(transformer.specification(), {batch, positions})),
        optimizer_(transformer.specification(), settings_),
        gradients_(transformer.architecture(), ArenaMemory::whole, transformer.device()),
        buffers_(transformer.specification(), batch, positions, Keep::every_block,
                 transformer.device()) {
    optimizer_.place(transformer.device());
  }

  // The step of train(). The loss is irrelevant: tokens are their own targets.
  void step() {
    gradients_.clear();
    transformer_.loss_and_gradients(
        tokens_, tokens_,
        {.scale = 1.0F / static_cast<float>(tokens_.size()),
         .dropout = {.active = true, .seed = seed, .pass = static_cast<std::uint64_t>(steps_)}},
        buffers_, gradients_);
    update();
  }

  void update() { optimizer_.update(steps_++, gradients_, transformer_.parameters()); }

 private:
  Transformer& transformer_;
  TrainSettings settings_;
  Tensor<std::int32_t> tokens_;  // (B, T)
  Optimizer optimizer_;
  Gradients gradients_;
  TrainingBuffers buffers_;
  std::int64_t steps_ = 0;
};

}  // namespace

BenchmarkReport measure_training(const BenchmarkOptions& options) {
  require(options.dtype == WeightFormat::f32 || options.dtype == WeightFormat::bf16,
          ErrorCode::unsupported, "training is in f32 or bf16, not in {}",
          kernels::weight_format_name(options.dtype));
  Transformer transformer =
      make_transformer(options, options.context.value_or(0), &ModelCost::train_bytes);
  const StackSpecification& config = transformer.specification();
  const std::int64_t batch = options.batch.value_or(4);
  const std::int64_t positions = options.context.value_or(config.context);
  const std::int64_t steps = options.count.value_or(1);
  require_positions_fit(config, positions);
  if (options.dtype == WeightFormat::bf16) {
    transformer.parameters().set_precision(kernels::Precision::bf16);
  }
  TrainingWork work(transformer, batch, positions);

  BenchmarkReport report = describe(options, config);
  report.batch = batch;
  report.context = positions;
  report.count = steps;
  BenchmarkMeasurer measurer(options, options.repeats.value_or(3), report);
  const WorkCost cost = training_step_cost(config, batch, positions) * real(steps);
  measurer.add({.name = "step",
                .dtype = options.dtype,
                .tokens = real(batch * positions * steps),
                .flops = cost.flops,
                .bytes = cost.bytes,
                .limit = product_limit(options.dtype)},
               [&] {
                 for (std::int64_t step = 0; step < steps; ++step) {
                   measurer.check_stop();
                   work.step();
                 }
               });
  const WorkCost update = update_cost(config) * real(steps);
  measurer.add({.name = "update",
                .dtype = WeightFormat::f32,
                .bytes = update.bytes,
                .limit = PeakLoop::read},
               [&] {
                 for (std::int64_t step = 0; step < steps; ++step) work.update();
               });
  return report;
}

BenchmarkReport measure_prompt(const BenchmarkOptions& options) {
  Transformer transformer =
      make_transformer(options, options.context.value_or(0), &ModelCost::run_bytes);
  const WeightFormat dtype = prepare_measured(transformer.parameters(), options);
  transformer.parameters().pack();
  const StackSpecification& config = transformer.specification();
  const std::int64_t batch = options.batch.value_or(1);
  const std::int64_t positions =
      options.context.value_or(std::min<std::int64_t>(512, config.context));
  const std::int64_t prompts = options.count.value_or(1);
  require_positions_fit(config, positions);
  const Tensor<std::int32_t> tokens = random_tokens(config, {batch, positions});
  BatchReader reader(transformer, batch, positions, options.cache_type);

  BenchmarkReport report = describe(options, config);
  report.batch = batch;
  report.context = positions;
  report.count = prompts;
  report.cache_type = options.cache_type;
  BenchmarkMeasurer measurer(options, options.repeats.value_or(5), report);
  const RunFormats formats{dtype, options.cache_type};
  Tensor<float> logits;
  if (options.all_logits) logits = Tensor<float>(Shape{batch * positions, config.vocabulary_size});
  WorkCost cost = prompt_cost(config, formats, batch, positions);
  if (options.all_logits) cost.flops += projection_flops(config) * real(batch * positions);
  cost = cost * real(prompts);
  measurer.add({.name = options.all_logits ? "prompt, all logits" : "prompt",
                .dtype = dtype,
                .tokens = real(batch * positions * prompts),
                .flops = cost.flops,
                .bytes = cost.bytes,
                .limit = product_limit(dtype)},
               [&] {
                 for (std::int64_t prompt = 0; prompt < prompts; ++prompt) {
                   measurer.check_stop();
                   reader.truncate(0);
                   options.all_logits ? reader.read(tokens, logits) : reader.read(tokens);
                 }
               });
  return report;
}

BenchmarkReport measure_decoding(const BenchmarkOptions& options) {
  const std::int64_t before = options.context.value_or(0);
  Transformer transformer =
      make_transformer(options, before + options.count.value_or(1), &ModelCost::run_bytes);
  const WeightFormat dtype = prepare_measured(transformer.parameters(), options);
  const StackSpecification& config = transformer.specification();
  const std::int64_t batch = options.batch.value_or(1);
  require_positions_fit(config, before + 1);
  const std::int64_t count =
      options.count.value_or(std::min<std::int64_t>(128, config.context - before));
  require_positions_fit(config, before + count);
  // (T, B, 1): of each position its tokens, side by side.
  const Tensor<std::int32_t> tokens = random_tokens(config, {count, batch, 1});
  BatchReader reader(transformer, batch, before + count, options.cache_type);
  if (before > 0) reader.read(random_tokens(config, {batch, before}));

  BenchmarkReport report = describe(options, config);
  report.batch = batch;
  report.context = before;
  report.count = count;
  report.cache_type = options.cache_type;
  BenchmarkMeasurer measurer(options, options.repeats.value_or(5), report);
  const RunFormats formats{dtype, options.cache_type};
  WorkCost cost;
  for (std::int64_t position = before; position < before + count; ++position) {
    const WorkCost token = decoding_cost(config, formats, batch, position);
    cost = {cost.flops + token.flops, cost.bytes + token.bytes};
  }
  measurer.add({.name = "decode",
                .dtype = dtype,
                .tokens = real(batch * count),
                .flops = cost.flops,
                .bytes = cost.bytes,
                .limit = PeakLoop::read},
               [&] {
                 reader.truncate(before);
                 for (std::int64_t i = 0; i < count; ++i) {
                   measurer.check_stop();
                   reader.read(tokens.view()[i]);
                 }
               });
  return report;
}

}  // namespace heed
