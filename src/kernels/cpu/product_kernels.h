// The interface between the driver of matrix products and an instruction set: packing panels of A
// and B, and computing one tile of C (Goto, van de Geijn 2008).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "kernels/cpu/product.h"
#include "kernels/cpu/rounding.h"

namespace heed::kernels {

// A range of rows or columns, and of `inner`.
struct PanelRange {
  std::int64_t first;  // row of A or column of B
  std::int64_t count;
  std::int64_t k;
  std::int64_t inner;
};

// C (rows, columns) = initial + A·B from packed panels.
struct ProductTile {
  const void* a;
  std::int64_t a_stride;  // elements between rows of A where it is not packed; 0: a packed panel
  const void* b;
  float* c;
  std::int64_t c_stride;
  const float* initial;  // null for zero; may be c
  std::int64_t initial_stride;
  std::int64_t rows;     // 1 to ProductKernels::rows
  std::int64_t columns;  // 1 to ProductKernels::columns
  std::int64_t inner;
  std::span<const std::byte> next;  // prefetched during the work
};

struct ProductKernels {
  std::int64_t rows;        // of a whole tile
  std::int64_t columns;     // of a whole tile, and of every panel of B
  std::int64_t row_unit;    // panels of A are padded to whole units of rows,
  std::int64_t inner_unit;  // and all panels to whole units of `inner`, with zeros
  std::int64_t element;     // bytes of an element in a panel
  // Cache blocking: a panel of A, inner_block deep, stays in the nearest cache that holds it while
  // panels of B are streamed; a block of B, inner_block x column_block, in the second level; a
  // block of A in the last level. Deep panels reduce passes over C, which matters most if C is in
  // memory.
  std::int64_t inner_block;  // a multiple of inner_unit
  std::int64_t row_block;
  std::int64_t column_block;  // a multiple of `columns`
  // With panels of B in place: the block of A stays in the second level, beside a panel of B and
  // the next one, which is prefetched.
  std::int64_t row_block_in_place;
  double panel_from_memory;  // the time to read a panel, in units of the time of a tile
  // The least rows of tiles in a part of a thread's rows. Each part reads all panels of B: enough
  // to hide that, with room for slower memory.
  std::int64_t tiles_of_part = 6;
  // Where rows of A are in place too: threads take ranges of columns in turns, not parts of rows.
  bool columns_in_turns = false;
  bool bf16_panels = false;    // panels of B are those of weights prepared in bf16
  bool f32_panels = false;     // whole panels of B are (inner, columns) in f32
  bool rows_in_place = false;  // tiles can read rows of A that are not packed
  // Consecutive panels of `rows` rows; the last may have fewer.
  void (*pack_a)(const ProductOperand& a, const PanelRange& range, void* panels);
  // One panel.
  void (*pack_b)(const ProductOperand& b, const PanelRange& range, void* panel);
  // Whole panels, one after the other, of a B that is not transposed. Null: one by one.
  void (*pack_panels_of_rows)(const ProductOperand& b, const PanelRange& range,
                              void* panels) = nullptr;
  void (*multiply_tile)(const ProductTile& tile);
  // For up to few_rows rows, as in decoding: a tile of twice the columns from two panels of B,
  // which are read from memory once. Null if there is no gain.
  std::int64_t few_rows = 0;
  void (*multiply_beside)(const ProductTile& tile, const void* right_b) = nullptr;
  // Setup and teardown of a thread; null if none is needed.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;

  // Bytes of `count` rows or columns of a panel `depth` deep.
  std::int64_t panel_bytes(std::int64_t count, std::int64_t depth) const {
    return count * round_up(depth, inner_unit) * element;
  }
  // The depth of the blocks of `inner`: equal blocks, in whole units of `unit`.
  std::int64_t block_depth(std::int64_t inner, std::int64_t unit) const {
    const std::int64_t blocks = std::max<std::int64_t>(divide_up(inner, inner_block), 1);
    return round_up(divide_up(inner, blocks), unit);
  }
};

// As many rows of `row_bytes`, whole tiles of them, as fill half of a core's second-level cache: of
// 1 MiB where the system does not tell.
std::int64_t rows_in_second_level(std::int64_t row_bytes, std::int64_t tile_rows);

// The kernels of the instruction set in use. f32: Highway; bf16: AMX, AVX-512 BF16, BFDOT
// of AArch64, or f32 arithmetic on rounded operands.
ProductKernels product_kernels(Precision precision);

// Whether it has dot products of bytes that belong to none of Highway's targets: AVX-VNNI of
// x86-64, beside AVX2, and SDOT of AArch64.
bool has_avx_vnni();
bool has_neon_dot_products();

ProductKernels f32_product_kernels();
ProductKernels rounded_product_kernels();
ProductKernels avx512_bf16_product_kernels();
ProductKernels neon_bf16_product_kernels();
ProductKernels amx_bf16_product_kernels();

}  // namespace heed::kernels
