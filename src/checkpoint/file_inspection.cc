#include "checkpoint/file_inspection.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "base/error.h"
#include "base/files.h"
#include "base/threads.h"
#include "checkpoint/gguf.h"
#include "checkpoint/tensor_source.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t chunk =
    1 << 16;  // numbers that are unpacked at once: whole blocks of each type

// Numbers from `begin` on, as many as there is room for.
using ReadNumbers = std::function<void(std::int64_t begin, std::span<float> out)>;

// Statistics of a part of a tensor, which are joined exactly but for rounding (Chan et al. 1979).
struct Moments {
  std::int64_t count = 0;  // finite numbers
  std::int64_t zeros = 0;
  std::int64_t not_finite = 0;
  double minimum = std::numeric_limits<double>::infinity();
  double maximum = -std::numeric_limits<double>::infinity();
  double mean = 0;
  double squares = 0;  // sum of squared distances from the mean
};

Moments moments_of(std::span<const float> numbers) {
  Moments part;
  double sum = 0;
  for (const float number : numbers) {
    if (!std::isfinite(number)) {
      ++part.not_finite;
      continue;
    }
    ++part.count;
    if (number == 0) ++part.zeros;
    part.minimum = std::min<double>(part.minimum, number);
    part.maximum = std::max<double>(part.maximum, number);
    sum += number;
  }
  if (part.count == 0) return part;
  part.mean = sum / static_cast<double>(part.count);
  for (const float number : numbers) {
    if (std::isfinite(number)) part.squares += (number - part.mean) * (number - part.mean);
  }
  return part;
}

void join(Moments& all, const Moments& part) {
  all.zeros += part.zeros;
  all.not_finite += part.not_finite;
  if (part.count == 0) return;
  const auto before = static_cast<double>(all.count);
  const auto added = static_cast<double>(part.count);
  const double distance = part.mean - all.mean;
  all.mean += distance * added / (before + added);
  all.squares += part.squares + distance * distance * before * added / (before + added);
  all.minimum = std::min(all.minimum, part.minimum);
  all.maximum = std::max(all.maximum, part.maximum);
  all.count += part.count;
}

TensorStatistics statistics_of(std::int64_t size, const ReadNumbers& read, StopFlag stop) {
  std::vector<Moments> parts(static_cast<std::size_t>((size + chunk - 1) / chunk));
  parallel_items(static_cast<std::int64_t>(parts.size()), [&](std::int64_t part) {
    require(!stop_requested(stop), ErrorCode::interrupted, "stopped while reading tensors");
    std::vector<float> numbers(static_cast<std::size_t>(std::min(chunk, size - part * chunk)));
    read(part * chunk, numbers);
    parts[static_cast<std::size_t>(part)] = moments_of(numbers);
  });
  Moments all;
  for (const Moments& part : parts) join(all, part);
  TensorStatistics found{.zeros = all.zeros, .not_finite = all.not_finite};
  if (all.count == 0) return found;
  found.minimum = all.minimum;
  found.maximum = all.maximum;
  found.mean = all.mean;
  found.deviation = std::sqrt(all.squares / static_cast<double>(all.count));
  return found;
}

// A tensor with the way to its numbers; no way to those of integers.
struct Readable {
  InspectedTensor tensor;
  ReadNumbers read = nullptr;
};

bool holds_weights(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16 || type == DType::f64;
}

Readable readable(const TensorEntry& entry) {
  Readable found{.tensor = {.name = entry.name,
                            .type = dtype_name(entry.dtype),
                            .shape = entry.shape,
                            .bytes = static_cast<std::int64_t>(entry.size_in_bytes()),
                            .statistics = {}}};
  if (!holds_weights(entry.dtype)) return found;
  found.read = [&entry](std::int64_t begin, std::span<float> out) {
    const std::size_t size = dtype_size(entry.dtype);
    const auto count = static_cast<std::int64_t>(out.size());
    const std::size_t first = static_cast<std::size_t>(begin) * size;
    TensorEntry part{.name = entry.name,
                     .dtype = entry.dtype,
                     .shape = Shape{count},
                     .bytes = {},
                     .file = entry.file,
                     .begin = entry.begin + first};
    if (!entry.file) part.bytes = entry.bytes.subspan(first, part.size_in_bytes());
    read_as_f32(part, View<float>(out.data(), Shape{count}));
  };
  return found;
}

Readable readable(const GgufTensor& tensor) {
  const BlockLayout layout = block_layout(tensor.type);
  Readable found{.tensor = {.name = tensor.name,
                            .type = layout.name,
                            .shape = tensor.shape,
                            .bytes = static_cast<std::int64_t>(tensor.size),
                            .statistics = {}}};
  if (!holds_weights(tensor.type)) return found;
  found.read = [&tensor, layout](std::int64_t begin, std::span<float> out) {
    const auto bytes_of = [&](std::int64_t numbers) {
      return static_cast<std::size_t>(numbers / layout.values * layout.bytes);
    };
    const auto count = static_cast<std::int64_t>(out.size());
    const std::size_t first = bytes_of(begin), size = bytes_of(count);
    const FilePart part = tensor.file ? tensor.file->part(tensor.begin + first, size)
                                      : FilePart(tensor.bytes.subspan(first, size));
    unpack_blocks(tensor.type, part.bytes(), out);
  };
  return found;
}

void add_tensors(InspectedFile& file, std::vector<Readable> tensors,
                 const InspectOptions& options) {
  std::int64_t total = 0;
  for (const Readable& each : tensors) total += each.tensor.bytes;
  std::int64_t done = 0;
  for (Readable& each : tensors) {
    if (options.statistics == InspectOptions::Statistics::all && each.read) {
      each.tensor.statistics = statistics_of(each.tensor.shape.size(), each.read, options.stop);
      done += each.tensor.bytes;
      if (options.progress) options.progress({.what = "reading", .done = done, .total = total});
    }
    file.tensors.push_back(std::move(each.tensor));
  }
}

InspectedFile inspect_gguf(const fs::path& path, const InspectOptions& options) {
  const std::vector<GgufFile> parts = open_gguf_parts(path);
  InspectedFile file{.format = fmt::format("GGUF {}", parts.front().version()),
                     .files = {},
                     .metadata = {},
                     .tensors = {}};
  std::vector<Readable> tensors;
  for (const GgufFile& part : parts) {
    file.files.push_back(part.source());
    for (const GgufTensor& tensor : part.tensors()) tensors.push_back(readable(tensor));
  }
  for (const GgufEntry& entry : parts.front().metadata()) {
    file.metadata.emplace_back(entry.key, entry.value.shown(options.max_elements));
  }
  add_tensors(file, std::move(tensors), options);
  return file;
}

InspectedFile inspect_safetensors(const fs::path& path, const InspectOptions& options) {
  const TensorSource source = open_tensor_source(path);
  InspectedFile file{.format = "safetensors",
                     .files = source.files(),
                     .metadata = {source.metadata().begin(), source.metadata().end()},
                     .tensors = {}};
  std::vector<Readable> tensors;
  for (const TensorEntry* entry : source.tensors()) tensors.push_back(readable(*entry));
  add_tensors(file, std::move(tensors), options);
  return file;
}

// By what the file begins with, whatever its name.
bool is_gguf(const fs::path& path) {
  char begin[4] = {};
  return RegularFile(path).read(0, begin) == sizeof(begin) &&
         std::string_view(begin, sizeof(begin)) == "GGUF";
}

}  // namespace

std::int64_t InspectedFile::numbers() const {
  std::int64_t sum = 0;
  for (const InspectedTensor& tensor : tensors) sum += tensor.shape.size();
  return sum;
}

std::int64_t InspectedFile::bytes() const {
  std::int64_t sum = 0;
  for (const InspectedTensor& tensor : tensors) sum += tensor.bytes;
  return sum;
}

InspectedFile inspect_file(const fs::path& path, const InspectOptions& options) {
  if (!fs::is_directory(path) && is_gguf(path)) return inspect_gguf(path, options);
  return inspect_safetensors(path, options);
}

}  // namespace heed
