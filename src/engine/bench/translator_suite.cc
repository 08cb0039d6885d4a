// The suite of encoder-decoders: a training step on pairs, encoding, greedy and beam decoding.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "base/error.h"
#include "base/random.h"
#include "engine/bench/measurer.h"
#include "engine/bench/work_cost.h"
#include "engine/loaded_model.h"
#include "generate/beam_search.h"
#include "model/input_checks.h"
#include "model/parameter_count.h"
#include "model/transformer.h"
#include "train/optimizer.h"

namespace heed {
namespace {

using kernels::PeakLoop;
using kernels::WeightFormat;

constexpr std::uint64_t random_seed = 1;

// As in training: src/train/pair_task.cc.
constexpr float smoothing = 0.1F;
constexpr std::int64_t loss_rows = 1024;

// The model whose own weights are measured; null: random weights.
std::shared_ptr<const Transformer> own_model(const BenchmarkOptions& options) {
  if (options.model.empty()) return nullptr;
  require(is_translator(options.model), ErrorCode::unsupported,
          "'{}' has no encoder: `heed bench decode -m {}` measures a decoder alone", options.model,
          options.model);
  const auto loaded = std::make_shared<const LoadedModel>(
      load_translator(options.model, {}, TokenizerNeed::optional));
  std::shared_ptr<const Transformer> own(loaded, &loaded->transformer);
  const WeightFormat stored = own->parameters().prepared_format();
  require(stored == WeightFormat::f32, ErrorCode::unsupported,
          "'{}' holds weights in {}: measure the model that it was converted from, with --dtype",
          options.model, kernels::weight_format_name(stored));
  return own;
}

Architecture measured_architecture(const BenchmarkOptions& options, const Transformer* own,
                                   std::int64_t positions) {
  Architecture architecture =
      own != nullptr ? own->architecture() : find_translator_architecture(options.config);
  for (StackSpecification& stack : architecture.stacks) {
    if (own == nullptr) stack.context = std::max(stack.context, positions);
    require_positions_fit(stack, positions);
  }
  // Every translation is as long as it may be.
  architecture.stacks.back().end_of_text = -1;
  architecture.decoder_start = std::max<std::int64_t>(architecture.decoder_start, 0);
  return architecture;
}

Transformer make_measured(const Transformer* own, const Architecture& architecture) {
  Transformer model(architecture);
  if (own != nullptr) {
    std::ranges::copy(own->parameters().all(), model.parameters().all().begin());
  } else {
    model.parameters().initialize(random_seed);
  }
  return model;
}

void require_translator_memory(const BenchmarkOptions& options, const Architecture& architecture,
                               const PairShape& shape) {
  // Weights, gradients and two moments, and the weights again as decoding has them.
  const std::int64_t bytes =
      5 * 4 * count_parameters(architecture).total +
      PairBuffers::bytes_needed(architecture, Keep::every_block, shape.pairs * shape.sources,
                                shape.pairs * shape.targets);
  require_memory(options.model.empty() ? options.config : options.model, bytes);
}

// Random texts, all of one length.
struct RandomTexts {
  std::vector<std::int32_t> tokens;
  std::vector<std::int64_t> row_starts{0};

  RandomTexts(std::int64_t count, std::int64_t length, std::int64_t vocabulary,
              std::uint64_t stream) {
    RandomStream random(random_seed, stream);
    for (std::int64_t text = 0; text < count; ++text) {
      for (std::int64_t i = 0; i < length; ++i) {
        tokens.push_back(
            static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocabulary))));
      }
      row_starts.push_back(std::ssize(tokens));
    }
  }
  TokenRows rows() const { return {tokens, row_starts}; }
};

// All memory of a training step on pairs.
class PairTrainingWork {
 public:
  PairTrainingWork(Transformer& model, const PairShape& shape)
      : model_(model),
        optimizer_(parameter_layout(model.architecture()),
                   TrainSettings{.model = model.architecture().decoder()}),
        gradients_(model.architecture()),
        buffers_(model.architecture(), Keep::every_block),
        source_(shape.pairs, shape.sources, model.architecture().encoder().vocabulary_size, 1),
        target_(shape.pairs, shape.targets, model.architecture().decoder().vocabulary_size, 2) {
    buffers_.loss() =
        VocabularyLoss(model.architecture().decoder().vocabulary_size, smoothing, loss_rows);
  }

  // The step of train(). The loss is irrelevant: tokens are their own targets.
  void step() {
    gradients_.clear();
    model_.loss_and_gradients(
        {.source = source_.rows(), .target = target_.rows(), .next = target_.tokens},
        {.scale = 1.0F / static_cast<float>(target_.tokens.size()),
         .dropout = {.active = true,
                     .seed = random_seed,
                     .pass = static_cast<std::uint64_t>(steps_)}},
        buffers_, gradients_);
    optimizer_.update(steps_++, gradients_, model_.parameters());
  }

 private:
  Transformer& model_;
  Optimizer optimizer_;
  Gradients gradients_;
  PairBuffers buffers_;
  RandomTexts source_;
  RandomTexts target_;
  std::int64_t steps_ = 0;
};

// Adds rows whose limit is the ceiling that allows less.
class TranslatorMeasurer {
 public:
  TranslatorMeasurer(const BenchmarkOptions& options, BenchmarkReport& report)
      : options_(options),
        report_(report),
        measurer_(options, options.repeats.value_or(5), report),
        count_(options.count.value_or(1)) {}

  void add(const std::string& name, const WorkCost& once, std::int64_t tokens,
           const std::function<void()>& work) {
    const WorkCost cost = once * real(count_);
    BenchmarkRow row{.name = name,
                     .dtype = options_.dtype,
                     .tokens = real(tokens * count_),
                     .flops = cost.flops,
                     .bytes = cost.bytes,
                     .limit = PeakLoop::read,  // until the ceilings are known
                     .product_limit = product_limit(options_.dtype)};
    measurer_.add(std::move(row), [&] {
      for (std::int64_t i = 0; i < count_; ++i) {
        measurer_.check_stop();
        work();
      }
    });
    report_.choose_limits();
  }

 private:
  const BenchmarkOptions& options_;
  BenchmarkReport& report_;
  BenchmarkMeasurer measurer_;
  std::int64_t count_;
};

}  // namespace

BenchmarkReport measure_translator(const BenchmarkOptions& options) {
  const std::int64_t positions = options.context.value_or(16);
  const PairShape shape{
      .pairs = options.batch.value_or(128), .sources = positions, .targets = positions};
  const std::shared_ptr<const Transformer> own = own_model(options);
  const Architecture architecture = measured_architecture(options, own.get(), positions);
  require_translator_memory(options, architecture, shape);
  BenchmarkReport report{.model = options.model.empty() ? options.config : options.model,
                         .parameters = count_parameters(architecture).total,
                         .batch = shape.pairs,
                         .context = positions,
                         .count = options.count.value_or(1),
                         .cache_type = options.cache_type};
  TranslatorMeasurer measurer(options, report);
  const bool trains = options.dtype == WeightFormat::f32 || options.dtype == WeightFormat::bf16;
  if (trains) {
    Transformer trained = make_measured(own.get(), architecture);
    if (options.dtype == WeightFormat::bf16) {
      trained.parameters().set_precision(kernels::Precision::bf16);
    }
    PairTrainingWork work(trained, shape);
    measurer.add("step", pair_step_cost(architecture, shape), shape.pairs * shape.targets,
                 [&] { work.step(); });
  }
  Transformer model = make_measured(own.get(), architecture);
  model.parameters().prepare(options.dtype);
  model.parameters().pack();
  const RunFormats formats{options.dtype, options.cache_type};
  const RandomTexts sources(shape.pairs, shape.sources, architecture.encoder().vocabulary_size, 3);
  measurer.add("encode", encoding_cost(architecture, formats, shape), shape.pairs * shape.sources,
               [&] { model.encode(sources.rows(), options.cache_type); });
  const auto add_search = [&](const std::string& name, std::int64_t beams) {
    const BeamOptions search{.beams = beams,
                             .max_length = shape.targets,
                             .cache_type = options.cache_type,
                             .stop = options.stop};
    measurer.add(name, translation_cost(architecture, formats, shape, beams),
                 shape.pairs * shape.targets, [&] { beam_search(model, sources.rows(), search); });
  };
  add_search("greedy", 1);
  if (options.beams > 1) add_search(fmt::format("{} beams", options.beams), options.beams);
  return report;
}

}  // namespace heed
