// What the kernels of attention share, on the device: rows, masks, scores, and products of tiles.
#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/device_code.h"
#include "kernels/dropout_bits.h"

namespace heed_cuda {

using heed::kernels::dropout_bits;
using heed::kernels::dropout_row_key;

constexpr float log2_e = 1.44269504088896340736F;
constexpr float ln_2 = 0.693147180559945309417F;

HEED_DEVICE float minus_infinity() { return __uint_as_float(0xFF800000U); }

HEED_DEVICE const HeedAttention& sequence_of(const HeedAttentionList& list, unsigned index) {
  return list.many != nullptr ? list.many[index] : list.one;
}

// --- Rows ---

template <class T>
HEED_DEVICE T* row_of(const HeedHeads& heads, int batch, int position, int head) {
  return reinterpret_cast<T*>(static_cast<char*>(heads.data) + batch * heads.batch +
                              position * heads.position + head * heads.head);
}

HEED_DEVICE float bf16_value(unsigned bits) { return __uint_as_float(bits << 16); }

// To the nearest bf16, to even between two; not-a-number stays that.
HEED_DEVICE unsigned bf16_bits(float value) {
  const unsigned bits = __float_as_uint(value);
  const bool is_number = (bits & 0x7FFFFFFFU) <= 0x7F800000U;
  return (is_number ? bits + 0x7FFFU + ((bits >> 16) & 1U) : bits | 0x400000U) >> 16;
}
HEED_DEVICE float rounded_to_bf16(float value) { return bf16_value(bf16_bits(value)); }

// How many numbers of a row are read at once.
enum class Width { one, four };
HEED_DEVICE Width width_of(const HeedHeads& heads) {
  return heads.vectors != 0 ? Width::four : Width::one;
}

// Four numbers of a row of `left`, zeros after them.
template <int type>
HEED_DEVICE float4 load_four(const char* row, int at, int left, Width width, float scale);
template <>
HEED_DEVICE float4 load_four<HEED_ROWS_F32>(const char* row, int at, int left, Width width, float) {
  const float* const from = reinterpret_cast<const float*>(row) + at;
  if (width == Width::four && left >= 4) return *reinterpret_cast<const float4*>(from);
  return make_float4(left > 0 ? from[0] : 0.0F, left > 1 ? from[1] : 0.0F,
                     left > 2 ? from[2] : 0.0F, left > 3 ? from[3] : 0.0F);
}
template <>
HEED_DEVICE float4 load_four<HEED_ROWS_BF16>(const char* row, int at, int left, Width width,
                                             float) {
  const unsigned short* const from = reinterpret_cast<const unsigned short*>(row) + at;
  if (width == Width::four && left >= 4) {
    const ushort4 bits = *reinterpret_cast<const ushort4*>(from);
    return make_float4(bf16_value(bits.x), bf16_value(bits.y), bf16_value(bits.z),
                       bf16_value(bits.w));
  }
  return make_float4(left > 0 ? bf16_value(from[0]) : 0.0F, left > 1 ? bf16_value(from[1]) : 0.0F,
                     left > 2 ? bf16_value(from[2]) : 0.0F, left > 3 ? bf16_value(from[3]) : 0.0F);
}
template <>
HEED_DEVICE float4 load_four<HEED_ROWS_INT8>(const char* row, int at, int left, Width width,
                                             float scale) {
  const signed char* const from = reinterpret_cast<const signed char*>(row) + at;
  if (width == Width::four && left >= 4) {
    const char4 bytes = *reinterpret_cast<const char4*>(from);
    return make_float4(scale * static_cast<float>(bytes.x), scale * static_cast<float>(bytes.y),
                       scale * static_cast<float>(bytes.z), scale * static_cast<float>(bytes.w));
  }
  return make_float4(left > 0 ? scale * static_cast<float>(from[0]) : 0.0F,
                     left > 1 ? scale * static_cast<float>(from[1]) : 0.0F,
                     left > 2 ? scale * static_cast<float>(from[2]) : 0.0F,
                     left > 3 ? scale * static_cast<float>(from[3]) : 0.0F);
}

// Rows of one head from some position on.
template <int type>
struct HeadRows {
  const char* data;
  long long step;
  const char* scales;
  long long scale_step;
  int count;  // rows behind are zeros
  int size;
  Width width;
  bool rounds;

  HEED_DEVICE float4 four(int row, int at) const {
    if (row >= count || at >= size) return make_float4(0.0F, 0.0F, 0.0F, 0.0F);
    float scale = 1.0F;
    if (type == HEED_ROWS_INT8) {
      scale = *reinterpret_cast<const float*>(scales + row * scale_step);
    }
    float4 numbers = load_four<type>(data + row * step, at, size - at, width, scale);
    if (rounds) {
      numbers = make_float4(rounded_to_bf16(numbers.x), rounded_to_bf16(numbers.y),
                            rounded_to_bf16(numbers.z), rounded_to_bf16(numbers.w));
    }
    return numbers;
  }
};

HEED_DEVICE HeadRows<HEED_ROWS_F32> float_rows(const HeedAttention& a, const HeedHeads& heads,
                                               int batch, int head, int begin, int end) {
  return {reinterpret_cast<const char*>(row_of<float>(heads, batch, begin, head)),
          heads.position,
          nullptr,
          0,
          end - begin,
          a.head_size,
          width_of(heads),
          a.rounds != 0};
}

template <int type>
HEED_DEVICE HeadRows<type> memory_rows(const HeedAttention& a, const HeedHeads& heads,
                                       const HeedHeads& scales, int batch, int head, int begin,
                                       int end) {
  return {row_of<char>(heads, batch, begin, head),
          heads.position,
          type == HEED_ROWS_INT8 ? row_of<char>(scales, batch, begin, head) : nullptr,
          scales.position,
          end - begin,
          a.head_size,
          width_of(heads),
          a.rounds != 0};
}

// --- Masks and scores ---

// Which pairs of a query and a key the mask leaves; a copy, so that it stays in registers.
struct Sight {
  int visible, window, queries, memory;

  HEED_DEVICE explicit Sight(const HeedAttention& a)
      : visible(a.visible), window(a.window), queries(a.queries), memory(a.memory) {}
  // Of a repetition, whose memory is longer.
  HEED_DEVICE Sight(const HeedAttention& a, int longer) : Sight(a) {
    visible += longer;
    memory += longer;
  }

  // Keys that a query sees.
  HEED_DEVICE int begin(int query) const { return max(visible + query - window + 1, 0); }
  HEED_DEVICE int end(int query) const { return max(min(visible + query + 1, memory), 0); }

  HEED_DEVICE bool of(int query, int key) const {
    const int own = visible + query;
    return static_cast<int>(query < queries) & static_cast<int>(key < memory) &
           static_cast<int>(key <= own) & static_cast<int>(key > own - window);
  }
  // Of so many queries and keys: all pairs; any pair, where it returns false only if
  // there is none.
  HEED_DEVICE bool of_all(int query, int query_count, int key, int key_count) const {
    return query + query_count <= queries && key + key_count <= end(query) &&
           key >= begin(query + query_count - 1);
  }
  HEED_DEVICE bool of_any(int query, int query_count, int key, int key_count) const {
    return key < end(min(query + query_count, queries) - 1) && key + key_count > begin(query);
  }
};

// From products of queries and keys to scores in units of 1/unit.
struct Scores {
  float factor, cap, unit;
  const float* bias;  // of the head
  int bias_shift, bias_count;

  HEED_DEVICE Scores(const HeedAttention& a, int head, float wanted_unit)
      : factor(a.soft_cap > 0.0F ? a.scale / a.soft_cap : a.scale * wanted_unit),
        cap(a.soft_cap * wanted_unit),
        unit(wanted_unit),
        bias(a.bias == nullptr ? nullptr : a.bias + head * a.bias_head),
        bias_shift(a.queries - a.memory - a.bias_first),
        bias_count(a.bias_count) {}

  HEED_DEVICE float of(float product, int query, int key) const {
    const float score = product * factor;
    if (cap > 0.0F) return cap * tanhf(score);
    if (bias == nullptr) return score;
    const int place = key - query + bias_shift;  // that of a masked pair may be anywhere
    return place >= 0 && place < bias_count ? score + unit * bias[place] : score;
  }
};

HEED_DEVICE unsigned dropout_key_of(const HeedAttention& a, int batch, int head, int query) {
  const long long row =
      (static_cast<long long>(batch) * a.heads + head) * a.row_step + a.first_row + query;
  return dropout_row_key(a.dropout.key, a.dropout.first_column, row);
}
// What becomes of a weight; a copy, too.
struct Dropping {
  unsigned threshold;  // 0: all are kept
  float keep_scale;

  HEED_DEVICE explicit Dropping(const HeedAttention& a)
      : threshold(a.dropout.threshold), keep_scale(1.0F / a.dropout.kept) {}

  HEED_DEVICE bool drops() const { return threshold != 0; }
  HEED_DEVICE bool keeps(unsigned row_key, int key) const {
    return dropout_bits(row_key, static_cast<unsigned>(key)) >= threshold;
  }
};

// --- Products of tiles in f32: 256 threads, 4 x 4 elements each ---

constexpr int tile_rows = 64;
constexpr int tile_pitch = 68;  // aligned for vectors; rows shift by four banks
constexpr int tile_floats = tile_rows * tile_pitch;
constexpr int tile_threads = 256;

HEED_DEVICE int tile_row() { return static_cast<int>(threadIdx.x) / 16 * 4; }
HEED_DEVICE int tile_column() { return static_cast<int>(threadIdx.x) % 16 * 4; }

// to[row][column], of 64 columns from `first` on.
template <int type>
HEED_DEVICE void load_tile(const HeadRows<type>& rows, int first, float* to) {
  const int column = static_cast<int>(threadIdx.x) % 16 * 4;
  HEED_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int row = static_cast<int>(threadIdx.x) / 16 + 16 * i;
    *reinterpret_cast<float4*>(to + row * tile_pitch + column) = rows.four(row, first + column);
  }
}

// to[column][row]
template <int type>
HEED_DEVICE void load_transposed(const HeadRows<type>& rows, int first, float* to) {
  const int row = static_cast<int>(threadIdx.x) / 4;
  HEED_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int column = static_cast<int>(threadIdx.x) % 4 * 4 + 16 * i;
    const float4 numbers = rows.four(row, first + column);
    float* const at = to + column * tile_pitch + row;
    at[0] = numbers.x;
    at[tile_pitch] = numbers.y;
    at[2 * tile_pitch] = numbers.z;
    at[3 * tile_pitch] = numbers.w;
  }
}

struct TileSum {
  float at[4][4];

  HEED_DEVICE void clear() {
    HEED_UNROLL
    for (int i = 0; i < 4; ++i) {
      HEED_UNROLL
      for (int j = 0; j < 4; ++j) at[i][j] = 0.0F;
    }
  }

  // += sum over k < depth of x[k][row] * y[k][column]. Three reads of shared memory, of which two
  // are broadcast, for 16 multiply-adds: bound by these.
  HEED_DEVICE void add_product(const float* x, const float* y, int depth) {
    x += tile_row();
    y += tile_column();
#ifdef __CUDACC__
#pragma unroll 8
#endif
    for (int k = 0; k < depth; ++k) {
      const float4 a = *reinterpret_cast<const float4*>(x + k * tile_pitch);
      const float4 b = *reinterpret_cast<const float4*>(y + k * tile_pitch);
      add_row(0, a.x, b);
      add_row(1, a.y, b);
      add_row(2, a.z, b);
      add_row(3, a.w, b);
    }
  }

  HEED_DEVICE void add_row(int i, float a, const float4& b) {
    at[i][0] += a * b.x;
    at[i][1] += a * b.y;
    at[i][2] += a * b.z;
    at[i][3] += a * b.w;
  }

  // to[row][column]
  HEED_DEVICE void store(float* to) const {
    HEED_UNROLL
    for (int i = 0; i < 4; ++i) {
      *reinterpret_cast<float4*>(to + (tile_row() + i) * tile_pitch + tile_column()) =
          make_float4(at[i][0], at[i][1], at[i][2], at[i][3]);
    }
  }
  // to[column][row]
  HEED_DEVICE void store_transposed(float* to) const {
    HEED_UNROLL
    for (int j = 0; j < 4; ++j) {
      *reinterpret_cast<float4*>(to + (tile_column() + j) * tile_pitch + tile_row()) =
          make_float4(at[0][j], at[1][j], at[2][j], at[3][j]);
    }
  }
};

// Products of all channels of two tiles of rows, 64 channels at a time.
template <int x_type, int y_type>
HEED_DEVICE void multiply_rows(const HeadRows<x_type>& x, const HeadRows<y_type>& y, float* x_room,
                               float* y_room, TileSum& sum) {
  sum.clear();
  for (int first = 0; first < x.size; first += tile_rows) {
    __syncthreads();
    load_transposed(x, first, x_room);
    load_transposed(y, first, y_room);
    __syncthreads();
    sum.add_product(x_room, y_room, min(x.size - first, tile_rows));
  }
}

// Over the 16 threads that share rows of a tile.
HEED_DEVICE float row_max(float value) {
  HEED_UNROLL
  for (int step = 8; step > 0; step /= 2) {
    value = fmaxf(value, __shfl_xor_sync(whole_warp, value, step));
  }
  return value;
}
HEED_DEVICE float row_sum(float value) {
  HEED_UNROLL
  for (int step = 8; step > 0; step /= 2) value += __shfl_xor_sync(whole_warp, value, step);
  return value;
}

// Up to four numbers of a row of `left`.
HEED_DEVICE void store_four(float* to, int left, Width width, const float4& numbers) {
  if (width == Width::four && left >= 4) {
    *reinterpret_cast<float4*>(to) = numbers;
    return;
  }
  if (left > 0) to[0] = numbers.x;
  if (left > 1) to[1] = numbers.y;
  if (left > 2) to[2] = numbers.z;
  if (left > 3) to[3] = numbers.w;
}

}  // namespace heed_cuda
