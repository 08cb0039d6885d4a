// How a matrix product is divided among threads: in a grid, in parts of rows, in ranges of columns.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/product_kernels.h"

namespace heed::kernels {

// Threads along rows and along columns of C.
struct Grid {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
};

// What panels cost a thread, in units of the time of a tile.
struct PanelTimes {
  double from_memory;        // a panel of B, while tiles are multiplied,
  double to_pack;            // and before
  double to_pack_row = 1.2;  // a row of tiles of A
};

// The grid whose slowest thread is done first.
Grid best_grid(std::int64_t threads, std::int64_t row_tiles, std::int64_t column_tiles,
               const PanelTimes& times);

// Whether panels of B are read where they are, or are packed first.
enum class PanelPlace { packed, in_place };

// How the rows of C are cut: for the threads, and once more for each thread.
class RowParts {
 public:
  // With panels of B in place, each thread's rows are divided, so that a thread that finishes early
  // takes some of another's: cores are not equally fast, and are shared.
  RowParts(const Product& product, const ProductKernels& kernels, const Grid& grid,
           PanelPlace panels)
      : rows_(product.rows), tile_(kernels.rows), threads_(grid.rows) {
    // Where tiles of fewer rows take less time, threads have equal rows.
    unit_ = kernels.row_unit == 1 ? 1 : tile_;
    if (panels == PanelPlace::packed || grid.rows * grid.columns == 1) return;
    constexpr std::int64_t most = 8;
    parts_ = std::clamp<std::int64_t>(rows_ / tile_ / threads_ / kernels.tiles_of_part, 1, most);
  }

  std::int64_t count() const { return threads_ * parts_; }

  // As many as the last parts, which threads begin while others finish.
  std::int64_t last() const { return parts_ >= 4 ? threads_ : 0; }

  // Of part `index`: whole tiles after the first row of its thread.
  std::int64_t first_row(std::int64_t index) const {
    const std::int64_t thread = index / parts_, begin = first_of(thread);
    const std::int64_t rows = first_of(thread + 1) - begin;
    return begin + rows * (index % parts_) / parts_ / tile_ * tile_;
  }

 private:
  std::int64_t first_of(std::int64_t thread) const {
    return std::min(divide_up(rows_, unit_) * thread / threads_ * unit_, rows_);
  }

  std::int64_t rows_, tile_, threads_;
  std::int64_t unit_ = 1;
  std::int64_t parts_ = 1;  // of a thread's rows
};

// The columns of B that are multiplied, in units that are not divided: the panels of the kernels,
// or those of prepared weights.
struct Columns {
  std::int64_t first;
  std::int64_t end;
  std::int64_t unit;

  std::int64_t units() const { return divide_up(end - first, unit); }
  // The first column of range `index` of `ranges` equal ones.
  std::int64_t first_of(std::int64_t index, std::int64_t ranges) const {
    return std::min(first + units() * index / ranges * unit, end);
  }
};

}  // namespace heed::kernels
