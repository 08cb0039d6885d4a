// Matrices in the layout of AMX: tiles of 16 × 16 words, where a word is a pair of bf16 along the
// summed dimension. In a left operand a word holds two neighbours of a row; in a right operand two
// of a column. Numbers are rounded to bf16. x86-64 only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/attention_head.h"
#include "kernels/cpu/bf16_vectors.h"

HWY_PUSH_ATTRIBUTES(HEED_BF16_INSTRUCTIONS)

namespace heed::kernels {

using Word = std::uint32_t;

inline constexpr std::int64_t tile_side = 16;  // rows, and words of a row
inline constexpr std::int64_t tile_words = tile_side * tile_side;
inline constexpr std::int64_t square_side = 32;  // rows and columns that are multiplied at a time

// The role of a packed matrix X in a product. Its tiles are stored row by row of X.
enum class TileForm {
  left,              // X·B: tiles of 16 rows × 32 columns of X
  right_transposed,  // A·Xᵀ: the same tiles, transposed
  right,             // A·X: tiles of 32 rows × 16 columns of X
  left_transposed,   // Xᵀ·B: the same tiles, transposed
};

constexpr bool pairs_rows(TileForm form) {
  return form == TileForm::right || form == TileForm::left_transposed;
}

// Tiles of one operand of a product: `neighbour` words from the first 16 rows (columns) to the next
// 16, `step` words along what is summed over.
struct TileOperand {
  const Word* first;
  std::int64_t neighbour;
  std::int64_t step;

  TileOperand at(std::int64_t sixteens, std::int64_t steps) const {
    return {first + sixteens * neighbour + steps * step, neighbour, step};
  }
};

// Rows (rows, depth) packed: both padded with zeros to whole squares.
template <TileForm form>
class PackedMatrix {
 public:
  PackedMatrix() = default;
  PackedMatrix(Word* words, std::int64_t rows, std::int64_t depth)
      : words_(words), rows_(rows), depth_(depth) {}

  // Words of a matrix of `rows` × `depth`, multiples of 32.
  static std::int64_t size(std::int64_t rows, std::int64_t depth) { return rows * depth / 2; }

  TileOperand operand() const {
    const std::int64_t across = depth_ / (pairs_rows(form) ? 16 : 32) * tile_words;
    return pairs_rows(form) ? TileOperand{words_, tile_words, across}
                            : TileOperand{words_, across, tile_words};
  }

  // `count` rows of `columns` numbers, to begin at row `row` of the matrix, a multiple of 32.
  void pack(Rows<const float> from, std::int64_t row, std::int64_t count, std::int64_t columns) {
    constexpr std::int64_t high = pairs_rows(form) ? 32 : 16, wide = 48 - high;
    for (std::int64_t r = 0; r < (count + 31) / 32 * 32; r += high) {
      for (std::int64_t c = 0; c < depth_; c += wide) {
        Word* const to = words_ + ((row + r) / high * (depth_ / wide) + c / wide) * tile_words;
        pack_tile({from[r] + c, from.stride}, count - r, columns - c, to);
      }
    }
  }

 private:
  HEED_INLINE void pack_tile(Rows<const float> from, std::int64_t rows, std::int64_t columns,
                             Word* to) const {
    constexpr bool turned = form == TileForm::right_transposed || form == TileForm::left_transposed;
    const auto load = [&](std::int64_t row, std::int64_t column) {
      const __mmask16 mask = row < rows ? first_lanes(columns - column) : 0;
      return _mm512_maskz_loadu_ps(mask, from[row] + column);
    };
    for (int i = 0; i < 16; ++i) {
      if constexpr (pairs_rows(form)) {
        _mm512_store_si512(to + i * tile_side, paired_words(load(2 * i, 0), load(2 * i + 1, 0)));
      } else {
        _mm512_store_si512(to + i * tile_side, neighbour_words(load(i, 0), load(i, 16)));
      }
    }
    if constexpr (turned) {
      __m512i words[16];
      for (int i = 0; i < 16; ++i) words[i] = _mm512_load_si512(to + i * tile_side);
      transpose_words(words);
      for (int i = 0; i < 16; ++i) _mm512_store_si512(to + i * tile_side, words[i]);
    }
  }

  Word* words_ = nullptr;
  std::int64_t rows_ = 0;
  std::int64_t depth_ = 0;
};

// Configures the tiles of a thread for the lifetime of the object.
class TileSession {
 public:
  TileSession() {
    static constexpr TileConfiguration configuration;
    _tile_loadconfig(&configuration);
  }
  ~TileSession() { _tile_release(); }
  TileSession(const TileSession&) = delete;
  TileSession& operator=(const TileSession&) = delete;
};

HEED_INLINE void load_left(const Word* a, const TileOperand& left) {
  _tile_loadd(4, a, 64);
  _tile_loadd(5, a + left.neighbour, 64);
}

HEED_INLINE void load_right(const Word* b, const TileOperand& right) {
  _tile_loadd(6, b, 64);
  _tile_loadd(7, b + right.neighbour, 64);
}

// The square in tiles 0 to 3 plus the product of what was loaded.
HEED_INLINE void add_loaded() {
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

// Adds the product of 32 rows of `left` and 32 columns of `right`, over `steps` of 32, to the
// square in tiles 0 to 3.
HEED_INLINE void add_square(const TileOperand& left, const TileOperand& right, std::int64_t steps) {
  const Word *a = left.first, *b = right.first;
  finish_stores();
  for (std::int64_t step = 0; step < steps; ++step) {
    load_left(a, left), load_right(b, right), add_loaded();
    a += left.step;
    b += right.step;
  }
}

// The product alone.
HEED_INLINE void multiply_square(const TileOperand& left, const TileOperand& right,
                                 std::int64_t steps) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  add_square(left, right, steps);
}

// Tiles 0 to 3 to 32 rows of 32 numbers, `stride` apart.
HEED_INLINE void store_square(float* to, std::int64_t stride) {
  _tile_stored(0, to, stride * 4);
  _tile_stored(1, to + 16, stride * 4);
  _tile_stored(2, to + 16 * stride, stride * 4);
  _tile_stored(3, to + 16 * stride + 16, stride * 4);
}

// 2^x for x <= 127; below −100 the result stays at 2^−100. As Exp2Clamped of vector_math-inl.h, of
// degree 4 (relative error 3e-6), since the result is rounded to bf16.
HEED_INLINE __m512 exp2_clamped(__m512 x) {
  const __m512 shift = _mm512_set1_ps(12582912.0F);
  x = _mm512_max_ps(_mm512_set1_ps(-100.0F), x);  // this order of operands propagates NaN
  const __m512 shifted = _mm512_add_ps(x, shift);
  const __m512 fraction = _mm512_sub_ps(x, _mm512_sub_ps(shifted, shift));
  const auto next = [&](__m512 power, float coefficient) {
    return _mm512_fmadd_ps(power, fraction, _mm512_set1_ps(coefficient));
  };
  __m512 power = _mm512_set1_ps(9.58285e-3F);
  power = next(power, 5.590643e-2F);
  power = next(power, 0.24024099F);
  power = next(power, 0.69312419F);
  power = next(power, 1.0F);
  const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(power), exponent));
}

}  // namespace heed::kernels

HWY_POP_ATTRIBUTES
