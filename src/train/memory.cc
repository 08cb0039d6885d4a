#include "train/memory.h"

#include <algorithm>

#include "base/error.h"
#include "model/encoder_decoder.h"
#include "model/gpt.h"

namespace heed {
namespace {

constexpr std::int64_t float_size = sizeof(float);

double gibibytes(std::int64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(std::int64_t{1} << 30);
}

// Settings that train the same model on the same number of tokens a step in less memory: first by
// recomputing, then by smaller batches that accumulate.
std::optional<TrainSettings> smaller_settings(const TrainSettings& settings,
                                              std::int64_t available) {
  TrainSettings smaller = settings;
  smaller.recompute = true;
  const std::int64_t sequences = settings.batch_size * settings.accumulation;
  for (std::int64_t batch = settings.batch_size; batch >= 1; --batch) {
    if (sequences % batch != 0) continue;
    smaller.batch_size = batch;
    smaller.accumulation = sequences / batch;
    if (training_memory(smaller).total() <= available) return smaller;
  }
  return std::nullopt;
}

// The same for pairs, in batches of fewer tokens.
std::optional<TrainSettings> smaller_settings(const TrainSettings& settings,
                                              const Architecture& architecture,
                                              std::int64_t available) {
  constexpr std::int64_t most_parts = 64;
  TrainSettings smaller = settings;
  smaller.recompute = true;
  for (std::int64_t parts = 1; parts <= most_parts; parts *= 2) {
    smaller.batch_tokens = settings.batch_tokens / parts;
    smaller.accumulation = settings.accumulation * parts;
    if (smaller.batch_tokens < 1) break;
    if (training_memory(smaller, architecture).total() <= available) return smaller;
  }
  return std::nullopt;
}

std::string memory_problem(std::int64_t needed, std::int64_t available) {
  return fmt::format("this run needs {:.1f} GiB of memory, and {:.1f} GiB are free",
                     gibibytes(needed), gibibytes(available));
}

}  // namespace

TrainingMemory training_memory(const TrainSettings& settings) {
  const StackSpecification& config = settings.model;
  const std::int64_t batch = settings.batch_size, positions = settings.sequence();
  const std::int64_t model = gpt_layout(config).size() * float_size;
  const Keep keep = settings.recompute ? Keep::residuals : Keep::every_block;
  return {.parameters = model,
          .gradients = model,
          .moments = 2 * model,
          .activations = GptActivations::bytes_needed(config, batch, positions, keep),
          .working = GptActivationGradients::bytes_needed(config, batch * positions) +
                     2 * VocabularyLoss::bytes_needed(config.vocabulary_size, batch * positions) +
                     GptActivations::bytes_needed(config, batch, positions, Keep::one_block)};
}

void require_training_memory(const TrainSettings& settings, std::optional<std::int64_t> available) {
  const std::int64_t needed = training_memory(settings).total();
  if (!available || needed <= *available) return;
  const std::string problem = memory_problem(needed, *available);
  const auto smaller = smaller_settings(settings, *available);
  require(smaller.has_value(), ErrorCode::out_of_memory,
          "{}: no batch is small enough, choose a smaller model or context", problem);
  fail(ErrorCode::out_of_memory,
       "{}: it would fit, with the same result, in {:.1f} GiB with --set recompute=true{}", problem,
       gibibytes(training_memory(*smaller).total()),
       smaller->batch_size == settings.batch_size
           ? std::string()
           : fmt::format(" --set batch_size={} --set accumulation={}", smaller->batch_size,
                         smaller->accumulation));
}

TrainingMemory training_memory(const TrainSettings& settings, const Architecture& architecture) {
  const std::int64_t model = parameter_layout(architecture).size() * float_size;
  const Keep keep = settings.recompute ? Keep::residuals : Keep::every_block;
  const std::int64_t rows = settings.batch_tokens;  // the most, on either side
  const std::int64_t activations =
      GptActivations::bytes_needed(architecture.encoder(), 1, rows, keep) +
      GptActivations::bytes_needed(architecture.decoder(), 1, rows, keep, rows);
  return {.parameters = model,
          .gradients = model,
          .moments = 2 * model,
          .activations = activations,
          .working = PairBuffers::bytes_needed(architecture, keep, rows, rows) - activations +
                     PairBuffers::bytes_needed(architecture, Keep::one_block, rows, rows)};
}

void require_training_memory(const TrainSettings& settings, const Architecture& architecture,
                             std::optional<std::int64_t> available) {
  const std::int64_t needed = training_memory(settings, architecture).total();
  if (!available || needed <= *available) return;
  const std::string problem = memory_problem(needed, *available);
  const auto smaller = smaller_settings(settings, architecture, *available);
  require(smaller.has_value(), ErrorCode::out_of_memory,
          "{}: no batch is small enough, choose a smaller model", problem);
  const bool fewer = smaller->batch_tokens != settings.batch_tokens;
  fail(ErrorCode::out_of_memory, "{}: it would fit in {:.1f} GiB with --set recompute=true{}",
       problem, gibibytes(training_memory(*smaller, architecture).total()),
       fewer ? fmt::format(" --set batch_tokens={} --set accumulation={}", smaller->batch_tokens,
                           smaller->accumulation)
             : std::string());
}

}  // namespace heed
