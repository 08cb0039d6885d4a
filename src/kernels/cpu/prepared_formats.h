// The interface of a prepared format: packing, dequantising and multiplying panels.
#pragma once

#include "kernels/cpu/product.h"
#include "kernels/prepared_weight.h"

namespace heed::kernels {

struct PanelShape {
  std::int64_t inputs;         // I
  std::int64_t padded_inputs;  // the next multiple of PreparedWeight::input_unit
};

// Consecutive panels, and their scales where the format has some.
struct PanelRun {
  const std::byte* first;
  const std::byte* scales;
  std::int64_t count;
  std::int64_t ahead = 0;  // bytes to prefetch ahead of what is multiplied, of all panels together
};

// Where a panel is written, zeroed before.
struct NewPanel {
  std::byte* panel;
  std::byte* scales;
};

struct PreparedFormat {
  std::int64_t (*panel_bytes)(const PanelShape& shape);  // without its scales
  std::int64_t (*scale_bytes)(const PanelShape& shape);  // of a panel
  // Writes a panel from `outputs` (1 to 32) rows of weights, `stride` apart. Null where weights
  // come in blocks.
  void (*write_panel)(const float* weight, std::int64_t stride, std::int64_t outputs,
                      const PanelShape& shape, const NewPanel& to);
  // Inputs [first, first + count), a multiple of 32 from a multiple of 32 on, of the run's first
  // panel as f32.
  void (*read_panel)(const PanelRun& run, const PanelShape& shape, std::int64_t first,
                     std::int64_t count, const RestoredPanel& restored);
  // Rows of sequences of up to this length are multiplied with the panels directly, by the
  // functions below; for more rows a matrix product is faster, or more exact.
  std::int64_t few_rows;
  // Both give the same results, so that the rows are counted, not the positions of a sequence.
  bool counts_rows = false;
  // Floats of `rows` prepared rows of x.
  std::int64_t (*prepared_rows_size)(std::int64_t rows, const PanelShape& shape);
  void (*prepare_rows)(const float* x, std::int64_t rows, const PanelShape& shape, float* prepared);
  // sums (panels, rows, 32) += prepared rows of x · panelsᵀ.
  void (*multiply_panels)(const float* prepared, std::int64_t rows, const PanelRun& run,
                          const PanelShape& shape, float* sums);
};

// For the instruction set in use.
PreparedFormat bf16_format();
PreparedFormat int8_format();
PreparedFormat int4_format();
PreparedFormat block_format(WeightFormat format);  // one that holds blocks

}  // namespace heed::kernels
