#include "train/memory.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "model/transformer.h"

namespace heed {
namespace {

constexpr std::int64_t float_size = sizeof(float);

// What parameters, gradients and moments take in each process: `memory` with those
// members set. Beside its own slices a process has, for a while, those parts of the model that a
// pass is at: parameters of one, and of one that arrives; gradients of one, and of two that leave.
TrainingMemory with_state(TrainingMemory memory, const TrainSettings& settings,
                          const Architecture& architecture, int processes) {
  const std::int64_t model = parameter_layout(architecture).size() * float_size;
  const std::int64_t slice = (model + processes - 1) / processes;
  std::vector<std::int64_t> sizes;
  const std::int64_t piece_rows = settings.shard == 3 ? table_piece_rows(architecture) : 0;
  for (const PartRange& range : part_ranges(architecture, piece_rows)) {
    sizes.push_back(static_cast<std::int64_t>(range.end - range.begin) * float_size);
  }
  std::ranges::sort(sizes, std::greater{});
  sizes.resize(std::max<std::size_t>(sizes.size(), 3));
  const auto held = [&](std::int64_t stage, int parts) {
    if (processes == 1 || settings.shard < stage) return model;
    return std::min(std::accumulate(sizes.begin(), sizes.begin() + parts, slice), model);
  };
  memory.parameters = held(3, 2);
  memory.gradients = held(2, 3);
  memory.moments = 2 * slice;
  return memory;
}

double gibibytes(std::int64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(std::int64_t{1} << 30);
}

// Settings that train the same model on the same number of tokens a step in less memory: first by
// recomputing, then by smaller batches that accumulate.
std::optional<TrainSettings> smaller_settings(const TrainSettings& settings, std::int64_t available,
                                              int processes) {
  TrainSettings smaller = settings;
  smaller.recompute = true;
  const std::int64_t sequences = settings.batch_size * settings.accumulation;
  for (std::int64_t batch = settings.batch_size; batch >= 1; --batch) {
    if (sequences % batch != 0) continue;
    smaller.batch_size = batch;
    smaller.accumulation = sequences / batch;
    if (training_memory(smaller, processes).total() <= available) return smaller;
  }
  return std::nullopt;
}

// The same for pairs, in batches of fewer tokens.
std::optional<TrainSettings> smaller_settings(const TrainSettings& settings,
                                              const Architecture& architecture,
                                              std::int64_t available, int processes) {
  constexpr std::int64_t max_parts = 64;
  TrainSettings smaller = settings;
  smaller.recompute = true;
  for (std::int64_t parts = 1; parts <= max_parts; parts *= 2) {
    smaller.batch_tokens = settings.batch_tokens / parts;
    smaller.accumulation = settings.accumulation * parts;
    if (smaller.batch_tokens < 1) break;
    if (training_memory(smaller, architecture, processes).total() <= available) return smaller;
  }
  return std::nullopt;
}

std::string memory_problem(std::int64_t needed, std::int64_t available) {
  return fmt::format("this run needs {:.1f} GiB of memory, and {:.1f} GiB are free",
                     gibibytes(needed), gibibytes(available));
}

}  // namespace

TrainingMemory training_memory(const TrainSettings& settings, int processes) {
  const StackSpecification& config = settings.model;
  // With a ring, of a member's chunks.
  const RingPlace place{.members = static_cast<int>(settings.sequence_parallel),
                        .positions = settings.sequence()};
  const bool is_divided = place.members > 1;
  const std::int64_t batch = settings.batch_size * (is_divided ? RingPlace::chunks : 1);
  const std::int64_t positions = is_divided ? place.chunk_length() : settings.sequence();
  const Keep keep = settings.recompute ? Keep::residuals : Keep::every_block;
  const TrainingMemory memory{
      .activations = StackActivations::bytes_needed(config, batch, positions, keep),
      .working = ActivationGradients::bytes_needed(config, batch * positions) +
                 (config.logit_cap > 0 ? 3 : 2) *
                     VocabularyLoss::bytes_needed(config.vocabulary_size, batch * positions) +
                 StackActivations::bytes_needed(config, batch, positions, Keep::one_block) +
                 KeyValueRing::bytes_needed(config, settings.batch_size, place)};
  return with_state(memory, settings, {.stacks = {config}}, processes);
}

void require_training_memory(const TrainSettings& settings, std::optional<std::int64_t> available,
                             int processes) {
  const std::int64_t needed = training_memory(settings, processes).total();
  if (!available || needed <= *available) return;
  const std::string problem = memory_problem(needed, *available);
  const auto smaller = smaller_settings(settings, *available, processes);
  require(smaller.has_value(), ErrorCode::out_of_memory,
          "{}: no batch is small enough, choose a smaller model or context", problem);
  fail(ErrorCode::out_of_memory,
       "{}: it would fit, with the same result, in {:.1f} GiB with --set recompute=true{}", problem,
       gibibytes(training_memory(*smaller, processes).total()),
       smaller->batch_size == settings.batch_size
           ? std::string()
           : fmt::format(" --set batch_size={} --set accumulation={}", smaller->batch_size,
                         smaller->accumulation));
}

TrainingMemory training_memory(const TrainSettings& settings, const Architecture& architecture,
                               int processes) {
  const Keep keep = settings.recompute ? Keep::residuals : Keep::every_block;
  const std::int64_t rows = settings.batch_tokens;  // the most, on either side
  const std::int64_t activations =
      StackActivations::bytes_needed(architecture.encoder(), 1, rows, keep) +
      StackActivations::bytes_needed(architecture.decoder(), 1, rows, keep, rows);
  const TrainingMemory memory{
      .activations = activations,
      .working = PairBuffers::bytes_needed(architecture, keep, rows, rows) - activations +
                 PairBuffers::bytes_needed(architecture, Keep::one_block, rows, rows)};
  return with_state(memory, settings, architecture, processes);
}

void require_training_memory(const TrainSettings& settings, const Architecture& architecture,
                             std::optional<std::int64_t> available, int processes) {
  const std::int64_t needed = training_memory(settings, architecture, processes).total();
  if (!available || needed <= *available) return;
  const std::string problem = memory_problem(needed, *available);
  const auto smaller = smaller_settings(settings, architecture, *available, processes);
  require(smaller.has_value(), ErrorCode::out_of_memory,
          "{}: no batch is small enough, choose a smaller model", problem);
  const bool fewer = smaller->batch_tokens != settings.batch_tokens;
  fail(ErrorCode::out_of_memory, "{}: it would fit in {:.1f} GiB with --set recompute=true{}",
       problem, gibibytes(training_memory(*smaller, architecture, processes).total()),
       fewer ? fmt::format(" --set batch_tokens={} --set accumulation={}", smaller->batch_tokens,
                           smaller->accumulation)
             : std::string());
}

}  // namespace heed
