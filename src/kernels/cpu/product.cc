#include "kernels/cpu/product.h"

#include <algorithm>

#include "base/threads.h"
#include "kernels/cpu/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/product.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/cpu/product_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

// Blocks that stay in caches: a panel of B, kInner deep (32 KiB with AVX-512), in the first level
// while the block of A, kRows x kInner (512 KiB), passes by it from the second.
constexpr std::int64_t kInner = 256;
constexpr std::int64_t kRows = kTileRows * (504 / kTileRows);
constexpr std::int64_t kColumns = 4096;

std::int64_t DivideUp(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// One tile of C from packed panels; columns that do not fill whole vectors go by way of a buffer.
HWY_INLINE void MultiplyTile(const Product& product, const ProductBlock& block, const float* a,
                             const float* b) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  const int vectors = static_cast<int>(DivideUp(block.columns, lanes));
  const bool first = block.k == 0;
  float* const c = product.c + block.row * product.columns + block.column;
  Tile tile{.a = a,
            .b = b,
            .c = c,
            .c_stride = product.columns,
            .initial = c,
            .initial_stride = product.columns,
            .inner = block.inner};
  if (first) {
    tile.initial_stride = product.initial_stride;
    tile.initial = product.initial == nullptr
                       ? nullptr
                       : product.initial + block.row * product.initial_stride + block.column;
  }
  const TileFunction compute = TileFor(block.rows, vectors);
  if (block.columns == vectors * lanes) return compute(tile);

  HWY_ALIGN float buffer[kTileRows * kTileVectors * hn::MaxLanes(Floats())];
  const std::int64_t width = vectors * lanes;
  const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(block.columns);
  if (tile.initial != nullptr) {
    for (std::int64_t r = 0; r < block.rows; ++r) {
      std::memcpy(buffer + r * width, tile.initial + r * tile.initial_stride, bytes);
      std::memset(buffer + r * width + block.columns, 0,
                  sizeof(float) * static_cast<std::size_t>(width - block.columns));
    }
    tile.initial = buffer;
    tile.initial_stride = width;
  }
  tile.c = buffer;
  tile.c_stride = width;
  compute(tile);
  for (std::int64_t r = 0; r < block.rows; ++r) {
    std::memcpy(c + r * product.columns, buffer + r * width, bytes);
  }
}

// Columns of the panel of B that begins at `column`: whole tiles, and at the end a single vector
// where that is enough.
HWY_INLINE std::int64_t PanelWidth(std::int64_t columns) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  return columns <= lanes ? lanes : TileColumns();
}

void MultiplyBlock(const Product& product, const ProductBlock& block, const float* packed_b) {
  float* const packed_a =
      scratch(Scratch::item, static_cast<std::size_t>(block.rows * block.inner));
  for (std::int64_t r = 0; r < block.rows; r += kTileRows) {
    PackA(product.a, block.row + r, std::min<std::int64_t>(kTileRows, block.rows - r), block.k,
          block.inner, packed_a + r * block.inner);
  }
  const std::int64_t width = TileColumns();
  for (std::int64_t column = 0; column < block.columns; column += width) {
    for (std::int64_t r = 0; r < block.rows; r += kTileRows) {
      const ProductBlock tile{.row = block.row + r,
                       .rows = std::min<std::int64_t>(kTileRows, block.rows - r),
                       .column = block.column + column,
                       .columns = std::min(width, block.columns - column),
                       .k = block.k,
                       .inner = block.inner};
      MultiplyTile(product, tile, packed_a + r * block.inner, packed_b + column * block.inner);
    }
  }
}

// One thread's rectangle of C.
void MultiplyRectangle(const Product& product, ProductBlock rectangle) {
  const std::int64_t pieces = std::max<std::int64_t>(DivideUp(product.inner, kInner), 1);
  const std::int64_t row_blocks = DivideUp(rectangle.rows, kRows);
  const std::int64_t rows =
      DivideUp(DivideUp(rectangle.rows, row_blocks), kTileRows) * kTileRows;
  const std::int64_t end_row = rectangle.row + rectangle.rows;
  const std::int64_t end_column = rectangle.column + rectangle.columns;
  for (std::int64_t column = rectangle.column; column < end_column; column += kColumns) {
    const std::int64_t columns = std::min(kColumns, end_column - column);
    const std::int64_t deepest = DivideUp(product.inner, pieces);
    const std::int64_t width = TileColumns();
    float* const packed_b = scratch(
        Scratch::memory, static_cast<std::size_t>(DivideUp(columns, width) * width * deepest));
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      const std::int64_t k = product.inner * piece / pieces;
      const std::int64_t inner = product.inner * (piece + 1) / pieces - k;
      for (std::int64_t c = 0; c < columns; c += width) {
        const std::int64_t count = std::min(width, columns - c);
        PackB(product.b, column + c, count, PanelWidth(count), k, inner, packed_b + c * inner);
      }
      for (std::int64_t row = rectangle.row; row < end_row; row += rows) {
        MultiplyBlock(product,
                      {.row = row,
                       .rows = std::min(rows, end_row - row),
                       .column = column,
                       .columns = columns,
                       .k = k,
                       .inner = inner},
                      packed_b);
      }
    }
  }
}

std::int64_t TileRowCount() { return kTileRows; }
std::int64_t TileColumnCount() { return TileColumns(); }

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(MultiplyRectangle);
HWY_EXPORT(TileRowCount);
HWY_EXPORT(TileColumnCount);

namespace {

// Multiply-adds below which a second thread costs more than it brings (about 10 µs of one).
constexpr std::int64_t work_of_a_thread = std::int64_t{1} << 18;

// Threads along rows and along columns of C.
struct Grid {
  int rows = 1;
  int columns = 1;
};

// The grid whose slowest thread has least to do: its tiles, and the panels that it packs.
Grid best_grid(int threads, std::int64_t row_tiles, std::int64_t column_tiles) {
  Grid best;
  double least = 1e300;
  for (int rows = 1; rows <= threads; ++rows) {
    const int columns = threads / rows;
    const double tall = static_cast<double>((row_tiles + rows - 1) / rows);
    const double wide = static_cast<double>((column_tiles + columns - 1) / columns);
    const double time = tall * wide + 0.15 * (tall + 2 * wide);
    if (time < least) {
      least = time;
      best = {.rows = rows, .columns = columns};
    }
  }
  return best;
}

}  // namespace

void multiply(const Product& product) {
  if (product.rows == 0 || product.columns == 0) return;
  const std::int64_t tile_rows = HWY_DYNAMIC_DISPATCH(TileRowCount)();
  const std::int64_t tile_columns = HWY_DYNAMIC_DISPATCH(TileColumnCount)();
  const std::int64_t row_tiles = (product.rows + tile_rows - 1) / tile_rows;
  const std::int64_t column_tiles = (product.columns + tile_columns - 1) / tile_columns;
  const std::int64_t work = product.rows * product.columns * std::max<std::int64_t>(product.inner, 1);
  const int threads = static_cast<int>(
      std::clamp<std::int64_t>(work / work_of_a_thread, 1, thread_count()));
  const Grid grid = best_grid(threads, row_tiles, column_tiles);
  parallel_ranges(grid.rows * grid.columns, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t i = item / grid.columns, j = item % grid.columns;
      const std::int64_t row = row_tiles * i / grid.rows * tile_rows;
      const std::int64_t column = column_tiles * j / grid.columns * tile_columns;
      const std::int64_t end_row =
          std::min(row_tiles * (i + 1) / grid.rows * tile_rows, product.rows);
      const std::int64_t end_column =
          std::min(column_tiles * (j + 1) / grid.columns * tile_columns, product.columns);
      if (row >= end_row || column >= end_column) continue;
      HWY_DYNAMIC_DISPATCH(MultiplyRectangle)
      (product, {.row = row,
                 .rows = end_row - row,
                 .column = column,
                 .columns = end_column - column,
                 .k = 0,
                 .inner = product.inner});
    }
  });
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
