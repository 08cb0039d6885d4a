#include "train/training_state.h"

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"

namespace heed {
namespace {

constexpr const char* parameters_name = "parameters";
constexpr const char* first_moment_name = "first_moment";
constexpr const char* second_moment_name = "second_moment";
constexpr const char* counters_name = "counters";  // (4) i64: step, epoch, index, best_step
constexpr const char* measures_name = "measures";  // (2) f64: best_cost, seconds
constexpr const char* unevaluated_name = "unevaluated_step";  // (1) i64; absent: it is evaluated

OutgoingTensor outgoing_numbers(const char* name, std::int64_t size, const NumberStream& numbers) {
  return {.name = name,
          .dtype = DType::f32,
          .shape = Shape{size},
          .produce = [&numbers](const ByteSink& sink) {
            numbers([&](std::span<const float> piece) { sink(std::as_bytes(piece)); });
          }};
}

const TensorEntry& entry_of(const SafetensorsFile& file, const char* name, DType dtype,
                            std::int64_t size) {
  const TensorEntry* entry = file.find(name);
  require(entry != nullptr, ErrorCode::corrupt_data, "{}: the training state has no '{}'",
          file.source(), name);
  require(entry->dtype == dtype && entry->shape == Shape{size}, ErrorCode::corrupt_data,
          "{}: '{}' is {} {}, but this run needs {} ({})", file.source(), name,
          dtype_name(entry->dtype), entry->shape.text(), dtype_name(dtype), size);
  return *entry;
}

using Counters = std::array<std::int64_t, 4>;

Counters read_counters(const SafetensorsFile& file) {
  Counters counters;
  std::memcpy(counters.data(), entry_of(file, counters_name, DType::i64, 4).bytes.data(),
              sizeof(counters));
  for (const std::int64_t counter : counters) {
    require(counter >= 0, ErrorCode::corrupt_data, "{}: a negative counter {}", file.source(),
            counter);
  }
  return counters;
}

RunPosition read_position(const SafetensorsFile& file) {
  const Counters counters = read_counters(file);
  double measures[2];
  std::memcpy(measures, entry_of(file, measures_name, DType::f64, 2).bytes.data(),
              sizeof(measures));
  return {.step = counters[0],
          .evaluated = file.find(unevaluated_name) == nullptr,
          .data = {.epoch = counters[1], .index = counters[2]},
          .best_cost = measures[0],
          .best_step = counters[3],
          .seconds = measures[1]};
}

std::span<const std::byte> float_bytes(const SafetensorsFile& file, const char* name,
                                       std::size_t size) {
  return entry_of(file, name, DType::f32, static_cast<std::int64_t>(size)).bytes;
}

}  // namespace

bool is_trained(const TrainSettings& settings, const RunPosition& position) {
  if (position.step >= settings.steps) return true;
  if (settings.early_stop <= 0 || settings.evaluate_every <= 0 ||
      !std::isfinite(position.best_cost))
    return false;
  return (position.step - position.best_step) / settings.evaluate_every >= settings.early_stop;
}

void save_training_state(const std::filesystem::path& file, const RunPosition& position,
                         const TrainingArrays& arrays) {
  const Counters counters{position.step, position.data.epoch, position.data.index,
                          position.best_step};
  const double measures[] = {position.best_cost, position.seconds};
  std::vector<OutgoingTensor> tensors{
      outgoing(counters_name, View<const std::int64_t>(counters.data(), {4})),
      outgoing(measures_name, View<const double>(measures, {2})),
      outgoing_numbers(parameters_name, arrays.size, arrays.parameters),
      outgoing_numbers(first_moment_name, arrays.size, arrays.first_moment),
      outgoing_numbers(second_moment_name, arrays.size, arrays.second_moment)};
  if (!position.evaluated) {
    tensors.push_back(outgoing(unevaluated_name, View<const std::int64_t>(&position.step, {1})));
  }
  write_safetensors(file, tensors);
}

RunPosition load_training_state(const std::filesystem::path& path, ShardedModel& model,
                                Optimizer& optimizer) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  const std::size_t size = model.size();
  model.copy(float_bytes(file, parameters_name, size));
  optimizer.set_moments(float_bytes(file, first_moment_name, size),
                        float_bytes(file, second_moment_name, size));
  return read_position(file);
}

RunPosition read_run_position(const std::filesystem::path& file) {
  return read_position(SafetensorsFile::open(file));
}

}  // namespace heed
