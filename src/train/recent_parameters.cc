#include "train/recent_parameters.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"

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

void RecentParameters::add(std::int64_t step, const GptParameters& parameters) {
  if (most_ == 0) return;
  make_directory(directory_);
  const std::span<const float> all = parameters.all();
  const OutgoingTensor tensor =
      outgoing(recent_name, View<const float>(all.data(), {std::ssize(all)}));
  write_safetensors(file(step), std::span(&tensor, 1));
  const std::vector<std::int64_t> kept = steps();
  for (std::int64_t i = 0; i < std::ssize(kept) - most_; ++i) {
    remove_file(file(kept[static_cast<std::size_t>(i)]));
  }
}

std::int64_t RecentParameters::count() const { return most_ == 0 ? 0 : std::ssize(steps()); }

std::int64_t RecentParameters::average(std::span<float> parameters) const {
  std::vector<double> sums(parameters.size());
  std::vector<float> values(parameters.size());
  const std::vector<std::int64_t> all = steps();
  for (const std::int64_t step : all) {
    const SafetensorsFile opened = SafetensorsFile::open(file(step));
    const TensorEntry* entry = opened.find(recent_name);
    require(entry != nullptr && entry->dtype == DType::f32 &&
                entry->shape == Shape{std::ssize(parameters)},
            ErrorCode::corrupt_data, "{}: expected the {} parameters of this run's model",
            opened.source(), parameters.size());
    std::memcpy(values.data(), entry->bytes.data(), entry->bytes.size());
    for (std::size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
  }
  check(!all.empty(), "parameters to average");
  for (std::size_t i = 0; i < sums.size(); ++i) {
    parameters[i] = static_cast<float>(sums[i] / static_cast<double>(all.size()));
  }
  return std::ssize(all);
}

}  // namespace heed
