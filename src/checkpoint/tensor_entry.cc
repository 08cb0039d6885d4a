#include "checkpoint/tensor_entry.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/bf16.h"
#include "base/error.h"
#include "base/threads.h"

namespace heed {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as they lie in memory");

// Minimum number of elements for each thread.
constexpr std::int64_t grain = 1 << 16;

// Side of the square blocks of a transposition: 64 × 64 f32 are 16 KiB on each side, so that both
// stay in the first-level cache.
constexpr std::int64_t tile = 64;

// Converts a stored element to a float; memcpy because elements in a file may be unaligned.
template <class Stored, float (*convert)(Stored)>
struct Reader {
  const std::byte* data;

  float operator()(std::int64_t index) const {
    Stored stored;
    std::memcpy(&stored, data + index * static_cast<std::int64_t>(sizeof(Stored)), sizeof(Stored));
    return convert(stored);
  }
};

float same(float value) { return value; }
float narrow(double value) { return static_cast<float>(value); }

// Calls `use` with the Reader for the entry's dtype.
template <class Use>
void with_reader(const TensorEntry& entry, Use&& use) {
  check(
      entry.bytes.size() == static_cast<std::size_t>(entry.shape.size()) * dtype_size(entry.dtype),
      "a tensor entry holds the bytes of its shape");
  const std::byte* data = entry.bytes.data();
  switch (entry.dtype) {
    case DType::f32: return use(Reader<float, same>{data});
    case DType::f16: return use(Reader<std::uint16_t, f16_to_f32>{data});
    case DType::bf16: return use(Reader<std::uint16_t, bf16_to_f32>{data});
    case DType::f64: return use(Reader<double, narrow>{data});
    default:
      fail(ErrorCode::unsupported,
           "tensor '{}' holds {} elements; weights are read from F32, F16, BF16 or F64", entry.name,
           dtype_name(entry.dtype));
  }
}

}  // namespace

void read_as_f32(const TensorEntry& entry, View<float> out) {
  require_shape(View<const float>(out), entry.shape,
                fmt::format("memory for tensor '{}'", entry.name));
  float* const to = out.span().data();
  if (entry.dtype == DType::f32) {
    parallel_ranges(entry.shape.size(), grain, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(to + begin, entry.bytes.data() + begin * 4,
                  static_cast<std::size_t>(end - begin) * 4);
    });
    return;
  }
  with_reader(entry, [&](auto read) {
    parallel_ranges(entry.shape.size(), grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i] = read(i);
    });
  });
}

void read_transposed_as_f32(const TensorEntry& entry, View<float> out) {
  require(entry.shape.rank() == 2, ErrorCode::invalid_argument,
          "tensor '{}' has shape {}; only a matrix can be transposed", entry.name,
          entry.shape.text());
  const std::int64_t rows = entry.shape[0];
  const std::int64_t columns = entry.shape[1];
  require_shape(View<const float>(out), Shape{columns, rows},
                fmt::format("memory for the transpose of tensor '{}'", entry.name));
  check(out.stride(1) == 1, "the rows of a transposed tensor are dense");
  with_reader(entry, [&](auto read) {
    const std::int64_t column_grain = std::max(tile, grain / std::max<std::int64_t>(rows, 1));
    parallel_ranges(columns, column_grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t left = begin; left < end; left += tile) {
        const std::int64_t right = std::min(left + tile, end);
        for (std::int64_t top = 0; top < rows; top += tile) {
          const std::int64_t bottom = std::min(top + tile, rows);
          for (std::int64_t column = left; column < right; ++column) {
            float* const to = out.data() + column * out.stride(0);
            for (std::int64_t row = top; row < bottom; ++row)
              to[row] = read(row * columns + column);
          }
        }
      }
    });
  });
}

}  // namespace heed
