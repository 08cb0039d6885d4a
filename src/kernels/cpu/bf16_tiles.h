// Matrices in the layout of AMX: tiles of 16 × 16 words, where a word is a pair of bf16 along the
// summed dimension. In a left operand a word holds two neighbours of a row; in a right operand two
// of a column. Numbers are rounded to bf16 (one part) or split without loss into three bf16: of the
// nine products of such parts the six largest are summed, and the others are below 2^-26 of the
// product. x86-64 only.
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

// split() for operands of any magnitude: parts of finite numbers stay finite, and an infinity or
// NaN ends up in the last part.
template <int parts>
HEED_INLINE Split<parts> split_operand(__m512 x) {
  if constexpr (parts == 1) {
    return {{x}};
  } else {
    const __m512 most = _mm512_set1_ps(3.3895314e38F), least = _mm512_set1_ps(-3.3895314e38F);
    const auto round = [&](__m512 value) {
      return _mm512_min_ps(most, _mm512_max_ps(least, rounded_to_bf16(value)));
    };
    const __m512 high = round(x), rest = _mm512_sub_ps(x, high);
    const __m512 middle = round(rest);
    return {{high, middle, _mm512_sub_ps(rest, middle)}};
  }
}

template <int parts>
HEED_INLINE void store_neighbour_words(const Split<parts>& low, const Split<parts>& high, Word* to,
                                       std::int64_t part) {
#pragma GCC unroll 3
  for (int p = 0; p < parts; ++p) {
    _mm512_store_si512(to + p * part, neighbour_words(low.part[p], high.part[p]));
  }
}

template <int parts>
HEED_INLINE void store_paired_words(const Split<parts>& low, const Split<parts>& high, Word* to,
                                    std::int64_t part) {
#pragma GCC unroll 3
  for (int p = 0; p < parts; ++p) {
    _mm512_store_si512(to + p * part, paired_words<parts>(low.part[p], high.part[p]));
  }
}

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
// 16, `step` words along what is summed over, `part` words between parts.
struct TileOperand {
  const Word* first;
  std::int64_t neighbour;
  std::int64_t step;
  std::int64_t part;

  TileOperand at(std::int64_t sixteens, std::int64_t steps) const {
    return {first + sixteens * neighbour + steps * step, neighbour, step, part};
  }
};

// Rows (rows, depth) packed: both padded with zeros to whole squares.
template <int parts, TileForm form>
class PackedMatrix {
 public:
  PackedMatrix() = default;
  PackedMatrix(Word* words, std::int64_t rows, std::int64_t depth)
      : words_(words), rows_(rows), depth_(depth) {}

  // Words of a matrix of `rows` × `depth`, multiples of 32.
  static std::int64_t size(std::int64_t rows, std::int64_t depth) {
    return parts * rows * depth / 2;
  }

  TileOperand operand() const {
    const std::int64_t part = rows_ * depth_ / 2, across = depth_ / (pairs_rows(form) ? 16 : 32);
    return pairs_rows(form) ? TileOperand{words_, tile_words, across * tile_words, part}
                            : TileOperand{words_, across * tile_words, tile_words, part};
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
    const std::int64_t part = rows_ * depth_ / 2;
    const auto load = [&](std::int64_t row, std::int64_t column) {
      const __mmask16 mask = row < rows ? first_lanes(columns - column) : 0;
      return split_operand<parts>(_mm512_maskz_loadu_ps(mask, from[row] + column));
    };
    for (int i = 0; i < 16; ++i) {
      if constexpr (pairs_rows(form)) {
        store_paired_words<parts>(load(2 * i, 0), load(2 * i + 1, 0), to + i * tile_side, part);
      } else {
        store_neighbour_words<parts>(load(i, 0), load(i, 16), to + i * tile_side, part);
      }
    }
    for (int p = 0; turned && p < parts; ++p) {
      Word* const tile = to + p * part;
      __m512i words[16];
      for (int i = 0; i < 16; ++i) words[i] = _mm512_load_si512(tile + i * tile_side);
      transpose_words(words);
      for (int i = 0; i < 16; ++i) _mm512_store_si512(tile + i * tile_side, words[i]);
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
// square in tiles 0 to 3. Of three parts the small products come first, so that their sums round
// little, in an order in which each has one operand in common with the next.
template <int parts>
HEED_INLINE void add_square(const TileOperand& left, const TileOperand& right, std::int64_t steps) {
  const Word *a = left.first, *b = right.first;
  finish_stores();
  for (std::int64_t step = 0; step < steps; ++step) {
    if constexpr (parts == 3) {
      load_left(a + 2 * left.part, left), load_right(b, right), add_loaded();
      load_left(a + left.part, left), add_loaded();
      load_right(b + right.part, right), add_loaded();
      load_left(a, left), add_loaded();
      load_right(b + 2 * right.part, right), add_loaded();
      load_right(b, right), add_loaded();
    } else {
      load_left(a, left), load_right(b, right), add_loaded();
    }
    a += left.step;
    b += right.step;
  }
}

// The product alone.
template <int parts>
HEED_INLINE void multiply_square(const TileOperand& left, const TileOperand& right,
                                 std::int64_t steps) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  add_square<parts>(left, right, steps);
}

// Tiles 0 to 3 to 32 rows of 32 numbers, `stride` apart.
HEED_INLINE void store_square(float* to, std::int64_t stride) {
  _tile_stored(0, to, stride * 4);
  _tile_stored(1, to + 16, stride * 4);
  _tile_stored(2, to + 16 * stride, stride * 4);
  _tile_stored(3, to + 16 * stride + 16, stride * 4);
}

// 2^x for x <= 127; below −100 the result stays at 2^−100. As Exp2Clamped of vector_math-inl.h, of
// degree 4 (relative error 3e-6) where the result is rounded to bf16, else 5 (1.9e-7).
template <int parts>
HEED_INLINE __m512 exp2_clamped(__m512 x) {
  const __m512 shift = _mm512_set1_ps(12582912.0F);
  x = _mm512_max_ps(_mm512_set1_ps(-100.0F), x);  // this order of operands propagates NaN
  const __m512 shifted = _mm512_add_ps(x, shift);
  const __m512 fraction = _mm512_sub_ps(x, _mm512_sub_ps(shifted, shift));
  const auto next = [&](__m512 power, float coefficient) {
    return _mm512_fmadd_ps(power, fraction, _mm512_set1_ps(coefficient));
  };
  __m512 power;
  if constexpr (parts == 1) {
    power = _mm512_set1_ps(9.58285e-3F);
    power = next(power, 5.590643e-2F);
    power = next(power, 0.24024099F);
    power = next(power, 0.69312419F);
  } else {
    power = _mm512_set1_ps(1.326472641633268e-3F);
    power = next(power, 9.6715130169051347e-3F);
    power = next(power, 5.5507337502038324e-2F);
    power = next(power, 0.24022242077174092F);
    power = next(power, 0.69314697758871621F);
  }
  power = next(power, 1.0F);
  const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(power), exponent));
}

}  // namespace heed::kernels

HWY_POP_ATTRIBUTES
