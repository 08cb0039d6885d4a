#include "kernels/cpu/product.h"

#include <algorithm>
#include <span>

#include "base/threads.h"
#include "base/topology.h"
#include "kernels/cpu/product_division.h"
#include "kernels/cpu/product_kernels.h"
#include "kernels/cpu/scratch.h"

namespace heed::kernels {
namespace {

// Multiply-adds below which a second thread does not pay off (about 10 µs of one thread).
constexpr std::int64_t work_of_a_thread = std::int64_t{1} << 18;

// A rectangle of C.
struct Rectangle {
  std::int64_t row;
  std::int64_t rows;
  std::int64_t column;
  std::int64_t columns;
};

// Whether panels of B are already in the layout of the kernels: packed weights, and some prepared
// weights.
bool reads_packed(const Product& product, const ProductKernels& kernels) {
  return product.packed_b != nullptr && product.packed_b->suits(kernels);
}
bool reads_in_place(const Product& product, const ProductKernels& kernels) {
  return reads_packed(product, kernels) || (product.prepared_b != nullptr && kernels.bf16_panels &&
                                            product.prepared_b->format() == WeightFormat::bf16);
}

// Whether tiles read rows of A where they are, which saves packing them. Rows that are a multiple
// of 2 KiB apart are packed: they share one or two sets of the first-level cache, which hold fewer
// lines than a tile has rows.
bool reads_rows_in_place(const Product& product, const ProductKernels& kernels) {
  constexpr std::int64_t conflicting_stride = 2048;
  return kernels.rows_in_place && !product.a.transposed &&
         product.a.stride * kernels.element % conflicting_stride != 0;
}

// Of prepared weights that have to be restored: whether that is done in the layout of the kernels,
// for all threads at once.
bool restores_columns(const Product& product, const ProductKernels& kernels) {
  return product.prepared_b != nullptr && !reads_in_place(product, kernels) && product.inner > 0 &&
         kernels.f32_panels && PreparedWeight::panel_outputs % kernels.columns == 0;
}

// The depth of the blocks of `inner`.
std::int64_t depth_of(const Product& product, const ProductKernels& kernels) {
  return kernels.block_depth(product.inner, product.prepared_b == nullptr
                                                ? kernels.inner_unit
                                                : PreparedWeight::input_unit);
}

// Some columns of B as panels in f32, (padded inputs, columns of a panel) each.
struct RestoredColumns {
  const std::byte* panels = nullptr;  // null: B is not restored
  std::int64_t first = 0;             // column
};

// The `index`-th of pieces of `size` bytes.
std::span<const std::byte> piece(std::span<const std::byte> whole, std::int64_t index,
                                 std::size_t size) {
  return {whole.data() + static_cast<std::size_t>(index) * size, size};
}

// One thread's share of a product.
class Worker {
 public:
  Worker(const Product& product, const ProductKernels& kernels, const RestoredColumns& restored,
         const Rectangle& rectangle)
      : product_(product),
        kernels_(kernels),
        restored_(restored),
        rectangle_(rectangle),
        in_place_(restored.panels != nullptr || reads_in_place(product, kernels)),
        rows_in_place_(reads_rows_in_place(product, kernels)),
        depth_(depth_of(product, kernels)) {
    const std::int64_t blocks =
        divide_up(rectangle.rows, in_place_ ? kernels.row_block_in_place : kernels.row_block);
    block_rows_ = round_up(divide_up(rectangle.rows, blocks), kernels.rows);
    if (!rows_in_place_) {
      packed_a_ = buffer(Scratch::item, round_up(block_rows_, kernels.row_unit) * depth_);
    }
    block_columns_ = in_place_ ? kernels.columns : kernels.column_block;
    if (in_place_) return;
    const std::int64_t widest = std::min(rectangle.columns, block_columns_);
    packed_b_ = buffer(Scratch::memory, round_up(widest, kernels.columns) * depth_);
  }

  void run() {
    if (kernels_.begin != nullptr) kernels_.begin();
    std::int64_t k = 0;
    do {
      const std::int64_t depth = std::min(depth_, inner() - k);
      for (std::int64_t row = rectangle_.row; row < end_row(); row += block_rows_) {
        const std::int64_t rows = std::min(block_rows_, end_row() - row);
        if (!rows_in_place_) {
          kernels_.pack_a(product_.a, {.first = row, .count = rows, .k = k, .inner = depth},
                          packed_a_);
        }
        if (in_place_ && rows <= kernels_.few_rows) {
          multiply_few_rows(row, rows, k, depth);
        } else {
          multiply_rows(row, rows, k, depth);
        }
      }
      k += depth_;
    } while (k < inner());
    if (kernels_.end != nullptr) kernels_.end();
  }

 private:
  std::int64_t inner() const { return product_.inner; }
  std::int64_t end_row() const { return rectangle_.row + rectangle_.rows; }
  std::int64_t end_column() const { return rectangle_.column + rectangle_.columns; }

  std::byte* buffer(Scratch use, std::int64_t elements) const {
    const std::int64_t bytes = elements * kernels_.element;
    return reinterpret_cast<std::byte*>(
        scratch(use, static_cast<std::size_t>(divide_up(bytes, sizeof(float)))));
  }

  void pack_b(const PanelRange& range, std::byte* panel) const {
    if (product_.prepared_b == nullptr) return kernels_.pack_b(product_.b, range, panel);
    constexpr std::int64_t width = PreparedWeight::panel_outputs;
    const std::int64_t inner = round_up(range.inner, PreparedWeight::input_unit);
    float* const values = scratch(Scratch::shared, static_cast<std::size_t>(inner * width));
    read_prepared_panel(*product_.prepared_b, range.first / width, range.k, inner, {.to = values});
    kernels_.pack_b(
        {.data = values, .stride = width},
        {.first = range.first % width, .count = range.count, .k = 0, .inner = range.inner}, panel);
  }

  // Panels of `columns` columns, one after the other.
  void pack_columns(std::int64_t column, std::int64_t columns, std::int64_t k,
                    std::int64_t depth) const {
    std::int64_t c = pack_whole_panels(column, columns, k, depth);
    for (; c < columns; c += kernels_.columns) {
      pack_b({.first = column + c,
              .count = std::min(kernels_.columns, columns - c),
              .k = k,
              .inner = depth},
             packed_b_ + kernels_.panel_bytes(c, depth));
    }
  }

  // Those that can be packed together. Returns how many columns they have.
  std::int64_t pack_whole_panels(std::int64_t column, std::int64_t columns, std::int64_t k,
                                 std::int64_t depth) const {
    const bool is_prepared = product_.prepared_b != nullptr;
    if (is_prepared || product_.b.transposed || kernels_.pack_panels_of_rows == nullptr) return 0;
    const std::int64_t whole = columns - columns % kernels_.columns;
    kernels_.pack_panels_of_rows(
        product_.b, {.first = column, .count = whole, .k = k, .inner = depth}, packed_b_);
    return whole;
  }

  const std::byte* panel_in_place(std::int64_t column, std::int64_t k) const {
    if (restored_.panels != nullptr) {
      return restored_.panels +
             kernels_.panel_bytes(column - restored_.first, product_.prepared_b->padded_inputs()) +
             kernels_.panel_bytes(kernels_.columns, k);
    }
    if (reads_packed(product_, kernels_)) return product_.packed_b->panel(column, k);
    return product_.prepared_b->panel(column / PreparedWeight::panel_outputs) +
           kernels_.panel_bytes(kernels_.columns, k);
  }

  // The data to prefetch after the panel of these rows and `column`.
  std::span<const std::byte> panel_after(std::int64_t row, std::int64_t column,
                                         std::int64_t k) const {
    column += kernels_.columns;
    if (column >= end_column()) {
      column = rectangle_.column;
      if (row + block_rows_ >= end_row()) k += depth_;
    }
    if (k >= inner()) return {};
    const std::int64_t depth = std::min(depth_, inner() - k);
    return {panel_in_place(column, k),
            static_cast<std::size_t>(kernels_.panel_bytes(kernels_.columns, depth))};
  }

  void multiply_few_rows(std::int64_t row, std::int64_t rows, std::int64_t k, std::int64_t depth) {
    const std::int64_t step = 2 * kernels_.columns;
    for (std::int64_t column = rectangle_.column; column < end_column(); column += step) {
      const ProductTile tile = tile_at({.row = row,
                                        .rows = rows,
                                        .column = column,
                                        .columns = std::min(step, end_column() - column)},
                                       row, panel_in_place(column, k), k, depth);
      if (tile.columns > kernels_.columns) {
        kernels_.multiply_beside(tile, panel_in_place(column + kernels_.columns, k));
      } else {
        kernels_.multiply_tile(tile);
      }
    }
  }

  void multiply_rows(std::int64_t row, std::int64_t rows, std::int64_t k, std::int64_t depth) {
    for (std::int64_t column = rectangle_.column; column < end_column(); column += block_columns_) {
      const Rectangle block{.row = row,
                            .rows = rows,
                            .column = column,
                            .columns = std::min(block_columns_, end_column() - column)};
      if (in_place_) {
        multiply_block(block, panel_in_place(column, k), panel_after(row, column, k), k, depth);
        continue;
      }
      pack_columns(column, block.columns, k, depth);
      multiply_block(block, packed_b_, {}, k, depth);
    }
  }

  // The panel of A after that of row `r` in a block of `rows` rows.
  std::span<const std::byte> rows_below(std::int64_t r, std::int64_t rows,
                                        std::int64_t depth) const {
    r += kernels_.rows;
    if (r >= rows || rows_in_place_) return {};
    const std::int64_t count = std::min(kernels_.rows, rows - r);
    return {packed_a_ + kernels_.panel_bytes(r, depth),
            static_cast<std::size_t>(kernels_.panel_bytes(count, depth))};
  }

  // Prefetches in small steps: with panels of B in place, each row of tiles prefetches a part of
  // the next panel of B; otherwise each tile prefetches part of the next panel of A.
  void multiply_block(const Rectangle& block, const std::byte* b, std::span<const std::byte> after,
                      std::int64_t k, std::int64_t depth) const {
    const std::int64_t down = divide_up(block.rows, kernels_.rows);
    const std::int64_t across = divide_up(block.columns, kernels_.columns);
    const std::size_t step_after = after.size() / static_cast<std::size_t>(down);
    for (std::int64_t i = 0; i < down; ++i) {
      const std::int64_t r = i * kernels_.rows;
      const std::span<const std::byte> below =
          in_place_ ? std::span<const std::byte>{} : rows_below(r, block.rows, depth);
      const std::size_t step_below = below.size() / static_cast<std::size_t>(across);
      for (std::int64_t j = 0; j < across; ++j) {
        const std::int64_t c = j * kernels_.columns;
        ProductTile tile = tile_at({.row = block.row + r,
                                    .rows = std::min(kernels_.rows, block.rows - r),
                                    .column = block.column + c,
                                    .columns = std::min(kernels_.columns, block.columns - c)},
                                   block.row, b + kernels_.panel_bytes(c, depth), k, depth);
        tile.next = in_place_ ? piece(after, i, step_after) : piece(below, j, step_below);
        kernels_.multiply_tile(tile);
      }
    }
  }

  // `first_row`: of the block of A that is packed.
  ProductTile tile_at(const Rectangle& square, std::int64_t first_row, const std::byte* b,
                      std::int64_t k, std::int64_t depth) const {
    float* const result = product_.c + square.row * product_.columns + square.column;
    const void* const packed = packed_a_ + kernels_.panel_bytes(square.row - first_row, depth);
    const void* const in_place = product_.a.data + square.row * product_.a.stride + k;
    ProductTile tile{.a = rows_in_place_ ? in_place : packed,
                     .a_stride = rows_in_place_ ? product_.a.stride : 0,
                     .b = b,
                     .c = result,
                     .c_stride = product_.columns,
                     .initial = result,
                     .initial_stride = product_.columns,
                     .rows = square.rows,
                     .columns = square.columns,
                     .inner = depth,
                     .next = {}};
    if (k > 0) return tile;
    tile.initial_stride = product_.initial_stride;
    tile.initial = product_.initial == nullptr
                       ? nullptr
                       : product_.initial + square.row * product_.initial_stride + square.column;
    return tile;
  }

  const Product& product_;
  const ProductKernels& kernels_;
  RestoredColumns restored_;
  Rectangle rectangle_;
  bool in_place_;       // panels of B
  bool rows_in_place_;  // A
  std::int64_t depth_;
  std::int64_t block_rows_ = 0;
  std::int64_t block_columns_ = 0;
  std::byte* packed_a_ = nullptr;
  std::byte* packed_b_ = nullptr;
};

// Restores panel `index` of the prepared weights to `to`. In the last one, tiles of fewer columns
// have panels of another layout.
void restore_panel(const Product& product, const ProductKernels& kernels, std::int64_t index,
                   std::byte* to) {
  constexpr std::int64_t width = PreparedWeight::panel_outputs;
  const PreparedWeight& weight = *product.prepared_b;
  const std::int64_t padded = weight.padded_inputs();
  const std::int64_t columns = std::min(width, product.columns - index * width);
  if (columns == width) {
    return read_prepared_panel(weight, index, 0, padded,
                               {.to = reinterpret_cast<float*>(to),
                                .columns = kernels.columns,
                                .stride = kernels.columns * padded});
  }
  float* const values = scratch(Scratch::item, static_cast<std::size_t>(padded * width));
  read_prepared_panel(weight, index, 0, padded, {.to = values});
  const std::int64_t depth = depth_of(product, kernels);
  for (std::int64_t c = 0; c < columns; c += kernels.columns) {
    for (std::int64_t k = 0; k < product.inner; k += depth) {
      kernels.pack_b({.data = values, .stride = width},
                     {.first = c,
                      .count = std::min(kernels.columns, columns - c),
                      .k = k,
                      .inner = std::min(depth, product.inner - k)},
                     to + kernels.panel_bytes(c, padded) + kernels.panel_bytes(kernels.columns, k));
    }
  }
}

// How C is divided among the threads.
struct Division {
  const Product& product;
  const ProductKernels& kernels;
  RestoredColumns restored;
  Columns columns;
  Grid grid;

  // The part of C in some rows and in range `index` of `ranges` of the columns.
  void multiply(std::int64_t row, std::int64_t end_row, std::int64_t index,
                std::int64_t ranges) const {
    const std::int64_t column = columns.first_of(index, ranges);
    const Rectangle rectangle{.row = row,
                              .rows = end_row - row,
                              .column = column,
                              .columns = columns.first_of(index + 1, ranges) - column};
    if (rectangle.rows <= 0 || rectangle.columns <= 0) return;
    Worker(product, kernels, restored, rectangle).run();
  }
};

// Threads take parts of some rows in turns.
void multiply_rows_in_turns(const Division& division, PanelPlace panels) {
  const Grid& grid = division.grid;
  const RowParts parts(division.product, division.kernels, grid, panels);
  // The last parts are cut into columns too, so that no thread waits long for another's. Kernels
  // that always pack A would do so for each of the cuts.
  constexpr std::int64_t cuts = 4;
  const bool cuts_last =
      division.kernels.rows_in_place && division.columns.units() >= 4 * cuts * grid.columns;
  const std::int64_t last = cuts_last ? parts.last() : 0;
  const std::int64_t whole = (parts.count() - last) * grid.columns;
  parallel_items(whole + last * cuts * grid.columns, [&](std::int64_t item) {
    const bool is_cut = item >= whole;
    const std::int64_t columns = is_cut ? cuts * grid.columns : grid.columns;
    const std::int64_t index = is_cut ? item - whole : item;
    const std::int64_t i = index / columns + (is_cut ? parts.count() - last : 0);
    division.multiply(parts.first_row(i), parts.first_row(i + 1), index % columns, columns);
  });
}

// Threads take ranges of columns in turns, with all of their rows: a range of panels of B stays in
// the second-level cache for these.
void multiply_columns_in_turns(const Division& division) {
  constexpr std::int64_t max_ranges = 16, min_panels = 4;  // ranges of a thread; of a range
  const Product& product = division.product;
  const Grid& grid = division.grid;
  const std::int64_t ranges =
      grid.columns *
      std::clamp<std::int64_t>(division.columns.units() / grid.columns / min_panels, 1, max_ranges);
  // Each range reads the rows again: as many at a time as stay in the last-level cache.
  constexpr std::int64_t max_bytes = std::int64_t{4} << 20;
  const std::int64_t row_bytes = product.a.stride * division.kernels.element;
  const std::int64_t blocks =
      grid.rows * divide_up(product.rows * row_bytes, grid.rows * max_bytes);
  parallel_items(blocks * ranges, [&](std::int64_t item) {
    // The threads' blocks beside each other: what one has read of B, others find in the cache.
    const std::int64_t group = item / (grid.rows * ranges), within = item % (grid.rows * ranges);
    const std::int64_t block = group * grid.rows + within % grid.rows;
    division.multiply(product.rows * block / blocks, product.rows * (block + 1) / blocks,
                      within / grid.rows, ranges);
  });
}

// Rows of C times columns [begin, end) of B, in all threads.
void multiply_columns(const Product& product, const ProductKernels& kernels, std::int64_t begin,
                      std::int64_t end, const RestoredColumns& restored) {
  // Threads divide the columns between panels of prepared weights.
  const std::int64_t unit = product.prepared_b == nullptr
                                ? kernels.columns
                                : std::max(kernels.columns, PreparedWeight::panel_outputs);
  const Columns columns{.first = begin, .end = end, .unit = unit};
  const std::int64_t work = product.rows * (end - begin) * std::max<std::int64_t>(product.inner, 1);
  const bool in_place = restored.panels != nullptr || reads_in_place(product, kernels);
  const bool rows_in_place = reads_rows_in_place(product, kernels);
  PanelTimes times = in_place ? PanelTimes{.from_memory = kernels.panel_from_memory, .to_pack = 0}
                              : PanelTimes{.from_memory = 0, .to_pack = 1.5};
  if (!in_place && rows_in_place) times.to_pack_row = 0;
  const std::int64_t threads = std::clamp<std::int64_t>(work / work_of_a_thread, 1, thread_count());
  const Division division{
      .product = product,
      .kernels = kernels,
      .restored = restored,
      .columns = columns,
      .grid = best_grid(threads, divide_up(product.rows, kernels.rows), columns.units(), times)};
  if (in_place && rows_in_place && kernels.columns_in_turns && threads > 1) {
    multiply_columns_in_turns(division);
  } else {
    multiply_rows_in_turns(division, in_place ? PanelPlace::in_place : PanelPlace::packed);
  }
}

// Restores prepared weights a few columns at a time, which stay in the last-level cache until they
// have been multiplied.
void multiply_restored(const Product& product, const ProductKernels& kernels) {
  constexpr std::int64_t width = PreparedWeight::panel_outputs, max_bytes = std::int64_t{8} << 20;
  const std::int64_t panel_bytes = kernels.panel_bytes(width, product.prepared_b->padded_inputs());
  const std::int64_t panels = divide_up(product.columns, width);
  const std::int64_t parts =
      std::min(divide_up(panels * panel_bytes, max_bytes), panels);  // of equal size
  const std::int64_t max_panels = divide_up(panels, parts);
  auto* const restored = reinterpret_cast<std::byte*>(
      scratch(Scratch::shared, static_cast<std::size_t>(max_panels * panel_bytes) / sizeof(float)));
  for (std::int64_t first = 0; first < panels; first += max_panels) {
    const std::int64_t count = std::min(max_panels, panels - first);
    parallel_ranges(count, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t index = begin; index < end; ++index) {
        restore_panel(product, kernels, first + index, restored + index * panel_bytes);
      }
    });
    multiply_columns(product, kernels, first * width,
                     std::min((first + count) * width, product.columns),
                     {.panels = restored, .first = first * width});
  }
}

}  // namespace

std::int64_t rows_in_second_level(std::int64_t row_bytes, std::int64_t tile_rows) {
  return std::max<std::int64_t>(second_level_cache_bytes() / 2 / row_bytes / tile_rows, 1) *
         tile_rows;
}

void multiply(const Product& product) {
  if (product.rows == 0 || product.columns == 0) return;
  const ProductKernels kernels = product_kernels(product.precision);
  if (restores_columns(product, kernels)) return multiply_restored(product, kernels);
  multiply_columns(product, kernels, 0, product.columns, {});
}

}  // namespace heed::kernels
