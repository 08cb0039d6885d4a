#include "kernels/cpu/product.h"

#include <algorithm>

#include "base/threads.h"
#include "kernels/cpu/product_kernels.h"
#include "kernels/cpu/scratch.h"

namespace heed::kernels {
namespace {

// Multiply-adds below which a second thread costs more than it brings (about 10 µs of one).
constexpr std::int64_t work_of_a_thread = std::int64_t{1} << 18;

// A rectangle of C.
struct Rectangle {
  std::int64_t row;
  std::int64_t rows;
  std::int64_t column;
  std::int64_t columns;
};

// One thread's share of a product.
class Worker {
 public:
  Worker(const Product& product, const ProductKernels& kernels, const Rectangle& rectangle)
      : product_(product), kernels_(kernels), rectangle_(rectangle) {
    depth_ = kernels.block_depth(
        inner(), product.prepared_b == nullptr ? kernels.inner_unit : PreparedWeight::input_unit);
    const std::int64_t blocks = divide_up(rectangle.rows, kernels.row_block);
    block_rows_ = round_up(divide_up(rectangle.rows, blocks), kernels.rows);
    packed_a_ = buffer(Scratch::item, round_up(block_rows_, kernels.row_unit) * depth_);
    const std::int64_t widest = std::min(rectangle.columns, kernels.column_block);
    if (reads_panels_in_place()) return;
    packed_b_ = buffer(Scratch::memory, round_up(widest, kernels.columns) * depth_);
  }

  void run() {
    if (kernels_.begin != nullptr) kernels_.begin();
    std::int64_t k = 0;
    do {
      const std::int64_t depth = std::min(depth_, inner() - k);
      const std::int64_t end = rectangle_.row + rectangle_.rows;
      for (std::int64_t row = rectangle_.row; row < end; row += block_rows_) {
        multiply_rows(row, std::min(block_rows_, end - row), k, depth);
      }
      k += depth_;
    } while (k < inner());
    if (kernels_.end != nullptr) kernels_.end();
  }

 private:
  std::int64_t inner() const { return product_.inner; }

  std::byte* buffer(Scratch use, std::int64_t elements) const {
    const std::int64_t bytes = elements * kernels_.element;
    return reinterpret_cast<std::byte*>(
        scratch(use, static_cast<std::size_t>(divide_up(bytes, sizeof(float)))));
  }

  // Packed weights, and some prepared ones, are already what the kernels read.
  bool reads_packed() const {
    return product_.packed_b != nullptr && product_.packed_b->suits(kernels_);
  }
  bool reads_panels_in_place() const {
    return reads_packed() || (product_.prepared_b != nullptr && kernels_.bf16_panels &&
                              product_.prepared_b->format() == WeightFormat::bf16);
  }

  void pack_b(const PanelRange& range, std::byte* panel) const {
    if (product_.prepared_b == nullptr) return kernels_.pack_b(product_.b, range, panel);
    constexpr std::int64_t width = PreparedWeight::panel_outputs;
    const std::int64_t inner = round_up(range.inner, PreparedWeight::input_unit);
    float* const values = scratch(Scratch::shared, static_cast<std::size_t>(inner * width));
    read_prepared_panel(*product_.prepared_b, range.first / width, range.k, inner, values);
    kernels_.pack_b(
        {.data = values, .stride = width},
        {.first = range.first % width, .count = range.count, .k = 0, .inner = range.inner}, panel);
  }

  const std::byte* panel_of_b(std::int64_t block_column, std::int64_t c, std::int64_t k,
                              std::int64_t depth) const {
    if (reads_packed()) return product_.packed_b->panel(block_column + c, k);
    if (!reads_panels_in_place()) return packed_b_ + kernels_.panel_bytes(c, depth);
    return product_.prepared_b->panel((block_column + c) / PreparedWeight::panel_outputs) +
           kernels_.panel_bytes(kernels_.columns, k);
  }

  void multiply_rows(std::int64_t row, std::int64_t rows, std::int64_t k, std::int64_t depth) {
    kernels_.pack_a(product_.a, {.first = row, .count = rows, .k = k, .inner = depth}, packed_a_);
    const std::int64_t end = rectangle_.column + rectangle_.columns;
    for (std::int64_t column = rectangle_.column; column < end; column += kernels_.column_block) {
      const std::int64_t columns = std::min(kernels_.column_block, end - column);
      for (std::int64_t c = 0; c < columns && !reads_panels_in_place(); c += kernels_.columns) {
        pack_b({.first = column + c,
                .count = std::min(kernels_.columns, columns - c),
                .k = k,
                .inner = depth},
               packed_b_ + kernels_.panel_bytes(c, depth));
      }
      multiply_block({.row = row, .rows = rows, .column = column, .columns = columns}, k, depth);
    }
  }

  void multiply_block(const Rectangle& block, std::int64_t k, std::int64_t depth) const {
    const bool beside = reads_panels_in_place() && block.rows <= kernels_.few_rows;
    const std::int64_t width = beside ? 2 * kernels_.columns : kernels_.columns;
    for (std::int64_t r = 0; r < block.rows; r += kernels_.rows) {
      for (std::int64_t c = 0; c < block.columns; c += width) {
        const ProductTile tile = tile_at(block, r, c, std::min(width, block.columns - c), k, depth);
        if (tile.columns > kernels_.columns) {
          kernels_.multiply_beside(tile, panel_of_b(block.column, c + kernels_.columns, k, depth));
        } else {
          kernels_.multiply_tile(tile);
        }
      }
    }
  }

  ProductTile tile_at(const Rectangle& block, std::int64_t r, std::int64_t c, std::int64_t columns,
                      std::int64_t k, std::int64_t depth) const {
    const std::int64_t row = block.row + r, column = block.column + c;
    float* const result = product_.c + row * product_.columns + column;
    ProductTile tile{.a = packed_a_ + kernels_.panel_bytes(r, depth),
                     .b = panel_of_b(block.column, c, k, depth),
                     .c = result,
                     .c_stride = product_.columns,
                     .initial = result,
                     .initial_stride = product_.columns,
                     .rows = std::min(kernels_.rows, block.rows - r),
                     .columns = columns,
                     .inner = depth};
    if (k > 0) return tile;
    tile.initial_stride = product_.initial_stride;
    tile.initial = product_.initial == nullptr
                       ? nullptr
                       : product_.initial + row * product_.initial_stride + column;
    return tile;
  }

  const Product& product_;
  const ProductKernels& kernels_;
  Rectangle rectangle_;
  std::int64_t depth_ = 0;
  std::int64_t block_rows_ = 0;
  std::byte* packed_a_ = nullptr;
  std::byte* packed_b_ = nullptr;
};

// Threads along rows and along columns of C.
struct Grid {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
};

// The grid whose slowest thread has least to do: its tiles, and the panels that it packs.
Grid best_grid(std::int64_t threads, std::int64_t row_tiles, std::int64_t column_tiles,
               double panel_of_b) {
  Grid best;
  double least = 0;
  for (std::int64_t rows = 1; rows <= threads; ++rows) {
    const Grid grid{.rows = rows, .columns = threads / rows};
    const double tall = static_cast<double>(divide_up(row_tiles, grid.rows));
    const double wide = static_cast<double>(divide_up(column_tiles, grid.columns));
    const double time = tall * wide + 0.15 * (tall + panel_of_b * wide);
    if (rows > 1 && time >= least) continue;
    least = time;
    best = grid;
  }
  return best;
}

}  // namespace

void multiply(const Product& product) {
  if (product.rows == 0 || product.columns == 0) return;
  const ProductKernels kernels = product_kernels(product.precision);
  const std::int64_t row_tiles = divide_up(product.rows, kernels.rows);
  const std::int64_t column_tiles = divide_up(product.columns, kernels.columns);
  const std::int64_t work =
      product.rows * product.columns * std::max<std::int64_t>(product.inner, 1);
  const Grid grid = best_grid(std::clamp<std::int64_t>(work / work_of_a_thread, 1, thread_count()),
                              row_tiles, column_tiles, product.packed_b == nullptr ? 2.0 : 0.0);
  parallel_ranges(grid.rows * grid.columns, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t i = item / grid.columns, j = item % grid.columns;
      const std::int64_t row = row_tiles * i / grid.rows * kernels.rows;
      const std::int64_t column = column_tiles * j / grid.columns * kernels.columns;
      const std::int64_t end_row =
          std::min(row_tiles * (i + 1) / grid.rows * kernels.rows, product.rows);
      const std::int64_t end_column =
          std::min(column_tiles * (j + 1) / grid.columns * kernels.columns, product.columns);
      if (row >= end_row || column >= end_column) continue;
      Worker(product, kernels,
             {.row = row, .rows = end_row - row, .column = column, .columns = end_column - column})
          .run();
    }
  });
}

}  // namespace heed::kernels
