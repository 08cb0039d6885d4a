#include "checkpoint/safetensors_writer.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/threads.h"
#include "checkpoint/safetensors.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

using enum ErrorCode;

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<std::int8_t>() {
  return DType::i8;
}
template <>
constexpr DType dtype_of<std::uint8_t>() {
  return DType::u8;
}
template <>
constexpr DType dtype_of<std::int16_t>() {
  return DType::i16;
}
template <>
constexpr DType dtype_of<std::uint16_t>() {
  return DType::u16;
}
template <>
constexpr DType dtype_of<std::int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<std::uint32_t>() {
  return DType::u32;
}
template <>
constexpr DType dtype_of<std::int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<std::uint64_t>() {
  return DType::u64;
}

// Rows of the transposed matrix per chunk: 1 MiB, at least one row.
constexpr std::int64_t block_elements = 1 << 18;

std::uint64_t byte_size(const OutgoingTensor& tensor) {
  return static_cast<std::uint64_t>(tensor.shape.size()) * dtype_size(tensor.dtype);
}

// Returns the header after its length, padded so that the data starts at a multiple of 8.
std::string header(std::span<const OutgoingTensor> tensors,
                   const std::map<std::string, std::string>& metadata) {
  OrderedJson description = OrderedJson::object();
  if (!metadata.empty()) description[std::string(safetensors_metadata_key)] = metadata;
  std::set<std::string_view> names;
  std::uint64_t offset = 0;
  for (const OutgoingTensor& tensor : tensors) {
    require(!tensor.name.empty() && tensor.name != safetensors_metadata_key, invalid_argument,
            "a tensor cannot be saved under the name '{}'", tensor.name);
    require(names.insert(tensor.name).second, invalid_argument,
            "two tensors to be saved have the name '{}'", tensor.name);
    const std::uint64_t end = offset + byte_size(tensor);
    description[tensor.name] = {{"dtype", dtype_name(tensor.dtype)},
                                {"shape", std::vector(tensor.shape.begin(), tensor.shape.end())},
                                {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text;
  try {
    text = description.dump();
  } catch (const OrderedJson::exception& error) {
    fail(invalid_argument, "a name or metadata to be saved is not UTF-8 ({})", error.what());
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  require(text.size() <= safetensors_largest_header, invalid_argument,
          "the names of {} tensors and the metadata take {} bytes; safetensors allows {}",
          tensors.size(), text.size(), safetensors_largest_header);
  const std::uint64_t length = text.size();
  std::string prefix(sizeof(length), '\0');
  std::memcpy(prefix.data(), &length, sizeof(length));
  return prefix + text;
}

}  // namespace

template <class T>
OutgoingTensor outgoing(std::string name, View<const T> elements) {
  const auto bytes = std::as_bytes(elements.span());
  OutgoingTensor tensor;
  tensor.name = std::move(name);
  tensor.dtype = dtype_of<T>();
  tensor.shape = elements.shape();
  tensor.produce = [bytes](const ByteSink& sink) { sink(bytes); };
  return tensor;
}

template OutgoingTensor outgoing(std::string, View<const float>);
template OutgoingTensor outgoing(std::string, View<const double>);
template OutgoingTensor outgoing(std::string, View<const std::int8_t>);
template OutgoingTensor outgoing(std::string, View<const std::uint8_t>);
template OutgoingTensor outgoing(std::string, View<const std::int16_t>);
template OutgoingTensor outgoing(std::string, View<const std::uint16_t>);
template OutgoingTensor outgoing(std::string, View<const std::int32_t>);
template OutgoingTensor outgoing(std::string, View<const std::uint32_t>);
template OutgoingTensor outgoing(std::string, View<const std::int64_t>);
template OutgoingTensor outgoing(std::string, View<const std::uint64_t>);

OutgoingTensor outgoing_transposed(std::string name, View<const float> matrix) {
  require(matrix.rank() == 2, invalid_argument,
          "tensor '{}' has shape {}; only a matrix can be transposed", name, matrix.shape().text());
  const std::int64_t rows = matrix.extent(1);  // of the file
  const std::int64_t columns = matrix.extent(0);
  const auto produce = [matrix, rows, columns](const ByteSink& sink) {
    const std::int64_t step = std::clamp<std::int64_t>(
        block_elements / std::max<std::int64_t>(columns, 1), 1, std::max<std::int64_t>(rows, 1));
    Tensor<float> block(Shape{step, columns});
    for (std::int64_t top = 0; top < rows; top += step) {
      const std::int64_t height = std::min(step, rows - top);
      // Tiles of 64 columns, so that the cache lines that a tile reads remain in the cache.
      parallel_ranges(columns, 64, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t left = begin; left < end; left += 64) {
          const std::int64_t right = std::min<std::int64_t>(left + 64, end);
          for (std::int64_t row = 0; row < height; ++row) {
            float* const to = block.data() + row * columns;
            for (std::int64_t column = left; column < right; ++column) {
              to[column] = matrix(column, top + row);
            }
          }
        }
      });
      sink(std::as_bytes(block.span().first(static_cast<std::size_t>(height * columns))));
    }
  };
  return {
      .name = std::move(name), .dtype = DType::f32, .shape = {rows, columns}, .produce = produce};
}

void write_safetensors(const std::filesystem::path& path, std::span<const OutgoingTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  AtomicFile file(path);
  write_safetensors(file, tensors, metadata);
  file.commit();
}

void write_safetensors(AtomicFile& file, std::span<const OutgoingTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  file.write(header(tensors, metadata));
  for (const OutgoingTensor& tensor : tensors) {
    std::uint64_t written = 0;
    tensor.produce([&](std::span<const std::byte> piece) {
      file.write(piece.data(), piece.size());
      written += piece.size();
    });
    check(written == byte_size(tensor), "a tensor hands over the bytes of its shape");
  }
}

}  // namespace heed
