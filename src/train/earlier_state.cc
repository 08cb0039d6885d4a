#include "train/earlier_state.h"

#include <array>
#include <cstring>

#include "base/error.h"
#include "checkpoint/safetensors.h"

namespace heed {
namespace {

constexpr const char* parameters_name = "parameters";
constexpr const char* first_moment_name = "first_moment";
constexpr const char* second_moment_name = "second_moment";
constexpr const char* counters_name = "counters";  // (4) i64: step, epoch, index, best_step
constexpr const char* measures_name = "measures";  // (2) f64: best_cost, seconds
constexpr const char* unevaluated_name = "unevaluated_step";  // (1) i64; absent: it is evaluated

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

RunPosition load_earlier_state(const std::filesystem::path& path, std::span<const ArenaRange> own,
                               GptParameters& parameters, Optimizer& optimizer) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  const std::size_t size = parameters.all().size();
  const auto values = float_bytes(file, parameters_name, size);
  for (const ArenaRange& range : own) {
    std::memcpy(parameters.all().data() + range.begin, values.data() + range.begin * sizeof(float),
                range.size() * sizeof(float));
  }
  optimizer.set_moments({0, size}, float_bytes(file, first_moment_name, size),
                        float_bytes(file, second_moment_name, size));
  return read_position(file);
}

RunPosition read_earlier_position(const std::filesystem::path& file) {
  return read_position(SafetensorsFile::open(file));
}

}  // namespace heed
