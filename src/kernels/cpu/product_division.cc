#include "kernels/cpu/product_division.h"

namespace heed::kernels {

Grid best_grid(std::int64_t threads, std::int64_t row_tiles, std::int64_t column_tiles,
               const PanelTimes& times) {
  Grid best;
  double least = 0;
  for (std::int64_t rows = 1; rows <= threads; ++rows) {
    const Grid grid{.rows = rows, .columns = threads / rows};
    const double tall = static_cast<double>(divide_up(row_tiles, grid.rows));
    const double wide = static_cast<double>(divide_up(column_tiles, grid.columns));
    const double panel = std::max(tall, times.from_memory) + times.to_pack;
    const double time = wide * panel + times.to_pack_row * tall;
    if (rows > 1 && time >= least) continue;
    least = time;
    best = grid;
  }
  return best;
}

}  // namespace heed::kernels
