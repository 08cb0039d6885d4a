#include "train/recent_parameters.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/safetensors.h"

namespace heed {
namespace {

constexpr const char* recent_name = "parameters";
constexpr const char* recent_extension = ".safetensors";

}  // namespace

RecentParameters::RecentParameters(std::filesystem::path directory, std::int64_t most)
    : directory_(std::move(directory)), most_(most) {}

std::filesystem::path RecentParameters::file(std::int64_t step) const {
  return directory_ / fmt::format("{:08}{}", step, recent_extension);
}

std::vector<std::int64_t> RecentParameters::steps() const {
  std::vector<std::int64_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::filesystem::path path = entry->path();
    const std::string stem = path.stem().string();
    std::int64_t step = 0;
    const auto read = std::from_chars(stem.data(), stem.data() + stem.size(), step);
    const bool is_number = read.ec == std::errc() && read.ptr == stem.data() + stem.size();
    if (is_number && path.extension() == recent_extension) found.push_back(step);
  }
  std::ranges::sort(found);
  return found;
}

void RecentParameters::forget_after(std::int64_t step) {
  if (most_ == 0) return;
  for (const std::int64_t each : steps()) {
    if (each > step) remove_file(file(each));
  }
}

void RecentParameters::add(std::int64_t step, const Parameters& parameters) {
  if (most_ == 0) return;
  make_directory(directory_);
  const OutgoingTensor tensor{
      .name = recent_name,
      .dtype = DType::f32,
      .shape = Shape{parameters.size},
      .produce = [&](const ByteSink& sink) {
        parameters.numbers([&](std::span<const float> piece) { sink(std::as_bytes(piece)); });
      }};
  write_safetensors(file(step), std::span(&tensor, 1));
  const std::vector<std::int64_t> kept = steps();
  for (std::int64_t i = 0; i < std::ssize(kept) - most_; ++i) {
    remove_file(file(kept[static_cast<std::size_t>(i)]));
  }
}

std::int64_t RecentParameters::count() const { return most_ == 0 ? 0 : std::ssize(steps()); }

std::int64_t RecentParameters::average(std::span<float> parameters,
                                       const std::vector<ArenaRange>& ranges) const {
  std::vector<SafetensorsFile> files;
  std::vector<const std::byte*> values;
  for (const std::int64_t step : steps()) {
    const SafetensorsFile& opened = files.emplace_back(SafetensorsFile::open(file(step)));
    const TensorEntry* entry = opened.find(recent_name);
    require(entry != nullptr && entry->dtype == DType::f32 &&
                entry->shape == Shape{std::ssize(parameters)},
            ErrorCode::corrupt_data, "{}: expected the {} parameters of this run's model",
            opened.source(), parameters.size());
    values.push_back(entry->bytes.data());
  }
  check(!values.empty(), "parameters to average");
  for (const ArenaRange& range : ranges) {
    for (std::size_t i = range.begin; i < range.end; ++i) {
      double sum = 0;
      for (const std::byte* const each : values) {
        float value = 0;
        std::memcpy(&value, each + i * sizeof(float), sizeof(float));
        sum += value;
      }
      parameters[i] = static_cast<float>(sum / static_cast<double>(values.size()));
    }
  }
  return std::ssize(values);
}

}  // namespace heed
