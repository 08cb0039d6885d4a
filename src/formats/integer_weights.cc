#include "formats/integer_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/bf16.h"
#include "base/error.h"

namespace heed {
namespace {

using kernels::PreparedWeight;
using kernels::WeightFormat;

constexpr std::int64_t group = PreparedWeight::group;
constexpr float min_magnitude = 1e-30F;  // groups of smaller weights are written as zeros

std::int64_t groups_of(std::int64_t inputs) { return (inputs + group - 1) / group; }

float largest_integer(WeightFormat format) { return format == WeightFormat::int8 ? 127.0F : 7.0F; }

std::int64_t row_bytes(std::int64_t inputs, WeightFormat format) {
  return format == WeightFormat::int8 ? inputs : (inputs + 1) / 2;
}

float largest_magnitude(std::span<const float> weights) {
  float largest = 0.0F;
  for (const float weight : weights) largest = std::max(largest, std::abs(weight));
  return largest < min_magnitude ? 0.0F : largest;
}

// The weights are scale · integer already, so the division is exact.
float scale_of(std::span<const float> weights, WeightFormat format) {
  return largest_magnitude(weights) / largest_integer(format);
}

// Calls body(row, group, weights of it) for every group of `matrix` (O, I).
template <class T, class Body>
void for_every_group(View<T> matrix, Body&& body) {
  const std::int64_t inputs = matrix.extent(1);
  for (std::int64_t o = 0; o < matrix.extent(0); ++o) {
    for (std::int64_t g = 0; g < groups_of(inputs); ++g) {
      const std::int64_t first = g * group, count = std::min(group, inputs - first);
      body(o, g, std::span<T>(&matrix(o, first), static_cast<std::size_t>(count)));
    }
  }
}

void put_integer(std::byte* row, std::int64_t input, int integer, WeightFormat format) {
  if (format == WeightFormat::int8) {
    row[input] = static_cast<std::byte>(integer);
  } else {
    const auto half = static_cast<std::byte>(integer + 8);
    row[input / 2] |= input % 2 == 0 ? half : half << 4;
  }
}

int get_integer(const std::byte* row, std::int64_t input, WeightFormat format) {
  if (format == WeightFormat::int8) return static_cast<std::int8_t>(row[input]);
  const int both = static_cast<int>(row[input / 2]);
  return (input % 2 == 0 ? both & 15 : both >> 4) - 8;
}

void produce_integers(View<const float> matrix, WeightFormat format, const ByteSink& sink) {
  const Tensor<float> restored = PreparedWeight(matrix, format).restored();
  const std::int64_t outputs = matrix.extent(0), inputs = matrix.extent(1);
  const std::int64_t bytes = row_bytes(inputs, format);
  Tensor<std::byte> integers(Shape{outputs, bytes});
  for_every_group(
      restored.view(), [&](std::int64_t o, std::int64_t g, std::span<const float> weights) {
        const float scale = scale_of(weights, format);
        for (std::size_t i = 0; i < weights.size(); ++i) {
          const int integer = scale == 0.0F ? 0 : static_cast<int>(std::lround(weights[i] / scale));
          put_integer(integers.data() + o * bytes, g * group + static_cast<std::int64_t>(i),
                      integer, format);
        }
      });
  if (format == WeightFormat::int4 && inputs % 2 == 1) {
    for (std::int64_t o = 0; o < outputs; ++o) {
      put_integer(integers.data() + o * bytes, inputs, 0, format);
    }
  }
  sink(integers.span());
}

void produce_scales(View<const float> matrix, WeightFormat format, const ByteSink& sink) {
  const Tensor<float> restored = PreparedWeight(matrix, format).restored();
  Tensor<std::uint16_t> scales(Shape{matrix.extent(0), groups_of(matrix.extent(1))});
  for_every_group(restored.view(),
                  [&](std::int64_t o, std::int64_t g, std::span<const float> weights) {
                    scales.view()(o, g) = f32_to_bf16(scale_of(weights, format));
                  });
  sink(std::as_bytes(scales.span()));
}

const TensorEntry* find_tensor(const TensorSource& source, const std::string& name, DType dtype,
                               const Shape& shape) {
  const TensorEntry* entry = source.find(name);
  require(entry != nullptr, ErrorCode::corrupt_data,
          "{}: tensor '{}' is missing; config.json requires it", source.source(), name);
  require(entry->dtype == dtype && entry->shape == shape, ErrorCode::corrupt_data,
          "{}: '{}' is {} {}, but config.json requires {} {}", source.source(), name,
          dtype_name(entry->dtype), entry->shape.text(), dtype_name(dtype), shape.text());
  return entry;
}

float read_scale(std::span<const std::byte> scales, std::int64_t index) {
  std::uint16_t bits;
  std::memcpy(&bits, scales.data() + index * 2, sizeof(bits));
  return bf16_to_f32(bits);
}

}  // namespace

bool is_integer(WeightFormat format) {
  return format == WeightFormat::int8 || format == WeightFormat::int4;
}

std::string integers_name(std::string_view matrix, WeightFormat format) {
  return fmt::format("{}.{}", matrix, kernels::weight_format_name(format));
}

std::string scales_name(std::string_view matrix) { return fmt::format("{}.scales", matrix); }

void append_integers(std::vector<OutgoingTensor>& tensors, const std::string& name,
                     View<const float> matrix, WeightFormat format) {
  const std::int64_t outputs = matrix.extent(0), inputs = matrix.extent(1);
  tensors.push_back({.name = integers_name(name, format),
                     .dtype = format == WeightFormat::int8 ? DType::i8 : DType::u8,
                     .shape = {outputs, row_bytes(inputs, format)},
                     .produce = [matrix, format](const ByteSink& sink) {
                       produce_integers(matrix, format, sink);
                     }});
  tensors.push_back({.name = scales_name(name),
                     .dtype = DType::bf16,
                     .shape = {outputs, groups_of(inputs)},
                     .produce = [matrix, format](const ByteSink& sink) {
                       produce_scales(matrix, format, sink);
                     }});
}

StoredIntegers find_integers(const TensorSource& source, const std::string& name,
                             const Shape& matrix, WeightFormat format) {
  return {find_tensor(source, integers_name(name, format),
                      format == WeightFormat::int8 ? DType::i8 : DType::u8,
                      {matrix[0], row_bytes(matrix[1], format)}),
          find_tensor(source, scales_name(name), DType::bf16, {matrix[0], groups_of(matrix[1])})};
}

void read_integers(const TensorSource& source, const StoredIntegers& stored, WeightFormat format,
                   View<float> out) {
  const std::int64_t inputs = out.extent(1), bytes = row_bytes(inputs, format);
  const int most = static_cast<int>(largest_integer(format));
  const FilePart integers_part = bytes_of(*stored.integers), scales = bytes_of(*stored.scales);
  const std::byte* const integers = integers_part.bytes().data();
  if (format == WeightFormat::int4 && inputs % 2 == 1) {
    for (std::int64_t o = 0; o < out.extent(0); ++o) {
      const int padding = get_integer(integers + o * bytes, inputs, format);
      require(padding == 0, ErrorCode::corrupt_data,
              "{}: '{}' has {} after the {} inputs of row {}; expected 0", source.source(),
              stored.integers->name, padding, inputs, o);
    }
  }
  for_every_group(out, [&](std::int64_t o, std::int64_t g, std::span<float> weights) {
    const float scale = read_scale(scales.bytes(), o * groups_of(inputs) + g);
    require(std::isfinite(scale * largest_integer(format)) && scale >= 0.0F,
            ErrorCode::corrupt_data,
            "{}: '{}' has scale {} at ({}, {}); expected a scale of at least 0 with finite weights",
            source.source(), stored.scales->name, scale, o, g);
    const std::byte* const row = integers + o * bytes;
    int largest = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const int integer = get_integer(row, g * group + static_cast<std::int64_t>(i), format);
      largest = std::max(largest, std::abs(integer));
      weights[i] = scale * static_cast<float>(integer);
    }
    require(largest == most || largest == 0, ErrorCode::corrupt_data,
            "{}: the largest magnitude of '{}' in group {} of row {} is {}; expected {} or 0",
            source.source(), stored.integers->name, g, o, largest, most);
  });
}

}  // namespace heed
