#include "train/memory.h"

#include <algorithm>

#include "base/error.h"
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

}  // namespace

TrainingMemory training_memory(const TrainSettings& settings) {
  const GptConfig& config = settings.model;
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
  const std::string problem =
      fmt::format("this run needs {:.1f} GiB of memory, and {:.1f} GiB are free", gibibytes(needed),
                  gibibytes(*available));
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

}  // namespace heed
