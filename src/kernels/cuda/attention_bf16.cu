// Attention by tensor cores: operands of products are rounded to bf16 while they are read, sums and
// softmax are f32 (as Dao 2023). A block has eight warps of 16 rows each; the other operand comes
// in tiles of 64 rows. Heads of up to 128 channels, forward up to 256, are padded by zeros.
//
// Operands are read again for every block of 128 rows, as f32: that traffic and the products limit
// these kernels about equally.
#include "kernels/cuda/attention_code.h"
#include "kernels/cuda/tensor_cores.h"

namespace heed_cuda {
namespace {

constexpr int warps = 8;
constexpr int threads = warps * warp_lanes;
constexpr int warp_rows = 16;
constexpr int block_rows = warps * warp_rows;
constexpr int stage_rows = 64;
// Backward takes half a stage at a time, so that sums fit into registers, and has small stages of
// large heads, so that they fit into 99 KB of shared memory.
constexpr int half_rows = 32;
__host__ __device__ constexpr int forward_stage(int size) {
  return size <= 128 ? stage_rows : half_rows;
}
__host__ __device__ constexpr int backward_stage(int size) {
  return size <= 96 ? stage_rows : half_rows;
}

using Bf16 = unsigned short;

// Whether scores have a cap or a bias, or the pattern dropout: without them there is room in
// registers for more blocks at a time.
enum class Extras { none, some };

template <Extras extras>
HEED_DEVICE bool drops(const Dropping& dropping) {
  return extras == Extras::some && dropping.drops();
}

template <Extras extras>
HEED_DEVICE float score_of(const Scores& score, float product, int query, int key) {
  return extras == Extras::some ? score.of(product, query, key) : product * score.factor;
}

// A row's bytes are an odd multiple of 16: eight rows of a matrix lie in different banks.
__host__ __device__ constexpr int pitch_of(int size) { return size + 8; }

HEED_DEVICE int lane_of() { return static_cast<int>(threadIdx.x) % warp_lanes; }
HEED_DEVICE int warp_of() { return static_cast<int>(threadIdx.x) / warp_lanes; }

HEED_DEVICE HeadRows<HEED_ROWS_F32> unrounded_rows(const HeedAttention& a, const HeedHeads& heads,
                                                   int batch, int head, int begin, int end) {
  HeadRows<HEED_ROWS_F32> rows = float_rows(a, heads, batch, head, begin, end);
  rows.rounds = false;
  return rows;
}

// count rows, rounded, to shared memory.
template <int size, int count>
HEED_DEVICE void load_rounded(const HeadRows<HEED_ROWS_F32>& rows, Bf16* to) {
  constexpr int vectors = size / 4;
  static_assert(count * vectors % threads == 0);
#ifdef __CUDACC__
#pragma unroll 4
#endif
  for (int i = 0; i < count * vectors / threads; ++i) {
    const int at = i * threads + static_cast<int>(threadIdx.x);
    const int row = at / vectors, column = at % vectors * 4;
    const float4 numbers = rows.four(row, column);
    *reinterpret_cast<uint2*>(to + row * pitch_of(size) + column) =
        make_uint2(bf16_pair(numbers.x, numbers.y), bf16_pair(numbers.z, numbers.w));
  }
}

// Sums of 16 rows and 8 * tiles columns.
template <int tiles>
struct WarpSum {
  float at[tiles][4];

  HEED_DEVICE void clear() {
    HEED_UNROLL
    for (int n = 0; n < tiles; ++n) {
      HEED_UNROLL
      for (int e = 0; e < 4; ++e) at[n][e] = 0.0F;
    }
  }

  // += x * y^T of 16 rows x and 8 * tiles rows y, over `size` channels.
  template <int size>
  HEED_DEVICE void add_products_of_rows(const Bf16* x, const Bf16* y) {
    HEED_UNROLL
    for (int k = 0; k < size; k += 16) {
      unsigned a[4];
      load_a(a, x + k, pitch_of(size));
      HEED_UNROLL
      for (int n = 0; n < tiles; n += 2) {
        unsigned b[4];
        load_b_of_rows(b, y + n * 8 * pitch_of(size) + k, pitch_of(size));
        multiply_fragments(at[n], a, b[0], b[1]);
        multiply_fragments(at[n + 1], a, b[2], b[3]);
      }
    }
  }

  // += x * y of 16 x 8 * depth numbers x, rounded here, and 8 * depth rows y.
  template <int depth>
  HEED_DEVICE void add_product(const WarpSum<depth>& x, const Bf16* y, int pitch) {
    HEED_UNROLL
    for (int k = 0; k < depth; k += 2) {
      const unsigned a[4] = {bf16_pair(x.at[k][0], x.at[k][1]), bf16_pair(x.at[k][2], x.at[k][3]),
                             bf16_pair(x.at[k + 1][0], x.at[k + 1][1]),
                             bf16_pair(x.at[k + 1][2], x.at[k + 1][3])};
      HEED_UNROLL
      for (int n = 0; n < tiles; n += 2) {
        unsigned b[4];
        load_b(b, y + k * 8 * pitch + n * 8, pitch);
        multiply_fragments(at[n], a, b[0], b[1]);
        multiply_fragments(at[n + 1], a, b[2], b[3]);
      }
    }
  }
};

// Where element e of tile n of a lane is.
HEED_DEVICE int row_in_warp(int e) { return lane_of() / 4 + e / 2 * 8; }
HEED_DEVICE int column_in_sum(int n, int e) { return n * 8 + lane_of() % 4 * 2 + e % 2; }

// Over the four lanes that share rows.
HEED_DEVICE float lanes_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(whole_warp, value, 1));
  return fmaxf(value, __shfl_xor_sync(whole_warp, value, 2));
}
HEED_DEVICE float lanes_sum(float value) {
  value += __shfl_xor_sync(whole_warp, value, 1);
  return value + __shfl_xor_sync(whole_warp, value, 2);
}

// factor[row] * sum, to rows of heads.
template <int tiles>
HEED_DEVICE void store_sum(const HeedAttention& a, const HeedHeads& heads, int b, int head,
                           int first_row, int rows, const float (&factor)[2],
                           const WarpSum<tiles>& sum) {
  HEED_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int row = first_row + row_in_warp(2 * half);
    if (row >= rows) continue;
    float* const to = row_of<float>(heads, b, row, head);
    HEED_UNROLL
    for (int n = 0; n < tiles; ++n) {
      const int column = column_in_sum(n, 0);
      const float x = factor[half] * sum.at[n][2 * half];
      const float y = factor[half] * sum.at[n][2 * half + 1];
      if (heads.vectors != 0 && column + 1 < a.head_size) {
        *reinterpret_cast<float2*>(to + column) = make_float2(x, y);
        continue;
      }
      if (column < a.head_size) to[column] = x;
      if (column + 1 < a.head_size) to[column + 1] = y;
    }
  }
}

// --- Forward ---

template <int size, Extras extras>
__global__ void __launch_bounds__(threads, size <= 128 ? 2 : 1)
    bf16_forward(const __grid_constant__ HeedAttentionList list) {
  const HeedAttention& a = sequence_of(list, blockIdx.y);
  const int blocks = (a.queries + block_rows - 1) / block_rows;
  if (static_cast<int>(blockIdx.x) >= a.batch * a.heads * blocks) return;
  // The last queries first: under a causal mask they take longest.
  const int plane = static_cast<int>(blockIdx.x) / blocks;
  const int first_query = (blocks - 1 - static_cast<int>(blockIdx.x) % blocks) * block_rows;
  const int end_query = min(first_query + block_rows, a.queries);
  const int b = plane / a.heads, h = plane % a.heads, g = h / a.group;

  constexpr int pitch = pitch_of(size), stage = forward_stage(size);
  constexpr int keys_together = size <= 64 ? stage : half_rows;
  Bf16* const queries = static_cast<Bf16*>(dynamic_shared_memory());
  Bf16* const keys = queries + block_rows * pitch;
  Bf16* const values = keys + stage * pitch;
  load_rounded<size, block_rows>(unrounded_rows(a, a.query, b, h, first_query, end_query), queries);

  const Scores score(a, h, log2_e);
  const Sight sight(a);
  const Dropping dropping(a);
  const int warp_query = first_query + warp_of() * warp_rows;
  float maximum[2] = {minus_infinity(), minus_infinity()}, sum[2] = {0.0F, 0.0F};
  unsigned dropout_key[2] = {0, 0};
  for (int half = 0; drops<extras>(dropping) && half < 2; ++half) {
    dropout_key[half] = dropout_key_of(a, b, h, warp_query + row_in_warp(2 * half));
  }
  WarpSum<size / 8> mixed;
  mixed.clear();
  const int begin = sight.begin(first_query) / stage * stage;
  const int end = sight.end(end_query - 1);
  for (int s = begin; s < end; s += stage) {
    const int end_key = min(s + stage, a.memory);
    __syncthreads();
    load_rounded<size, stage>(unrounded_rows(a, a.key, b, g, s, end_key), keys);
    load_rounded<size, stage>(unrounded_rows(a, a.value, b, g, s, end_key), values);
    __syncthreads();
    for (int half = 0; half < stage; half += keys_together) {
      // What no query of the warp sees changes nothing.
      const int first_key = s + half;
      if (!sight.of_any(warp_query, warp_rows, first_key, keys_together)) continue;
      WarpSum<keys_together / 8> weights;
      weights.clear();
      weights.template add_products_of_rows<size>(queries + warp_of() * warp_rows * pitch,
                                                  keys + half * pitch);
      const bool whole = sight.of_all(warp_query, warp_rows, first_key, keys_together);
      HEED_UNROLL
      for (int n = 0; n < keys_together / 8; ++n) {
        HEED_UNROLL
        for (int e = 0; e < 4; ++e) {
          weights.at[n][e] = score_of<extras>(score, weights.at[n][e], warp_query + row_in_warp(e),
                                              first_key + column_in_sum(n, e));
        }
      }
      if (!whole) {
        HEED_UNROLL
        for (int n = 0; n < keys_together / 8; ++n) {
          HEED_UNROLL
          for (int e = 0; e < 4; ++e) {
            const bool seen =
                sight.of(warp_query + row_in_warp(e), first_key + column_in_sum(n, e));
            weights.at[n][e] = seen ? weights.at[n][e] : minus_infinity();
          }
        }
      }
      float largest[2] = {minus_infinity(), minus_infinity()};
      HEED_UNROLL
      for (int n = 0; n < keys_together / 8; ++n) {
        HEED_UNROLL
        for (int e = 0; e < 4; ++e) largest[e / 2] = fmaxf(largest[e / 2], weights.at[n][e]);
      }
      float reference[2], rescale[2], total[2] = {0.0F, 0.0F};
      HEED_UNROLL
      for (int r = 0; r < 2; ++r) {
        const float before = maximum[r];
        maximum[r] = fmaxf(before, lanes_max(largest[r]));
        reference[r] = maximum[r] == minus_infinity() ? 0.0F : maximum[r];
        rescale[r] = rough_exp2(before - reference[r]);
      }
      HEED_UNROLL
      for (int n = 0; n < keys_together / 8; ++n) {
        HEED_UNROLL
        for (int e = 0; e < 4; ++e) {
          float weight = rough_exp2(weights.at[n][e] - reference[e / 2]);
          total[e / 2] += weight;
          if (drops<extras>(dropping) &&
              !dropping.keeps(dropout_key[e / 2], first_key + column_in_sum(n, e))) {
            weight = 0.0F;
          }
          weights.at[n][e] = weight;
        }
      }
      HEED_UNROLL
      for (int r = 0; r < 2; ++r) sum[r] = sum[r] * rescale[r] + total[r];
      HEED_UNROLL
      for (int n = 0; n < size / 8; ++n) {
        HEED_UNROLL
        for (int e = 0; e < 4; ++e) mixed.at[n][e] *= rescale[e / 2];
      }
      mixed.add_product(weights, values + half * pitch, pitch);
    }
  }

  float factor[2];
  HEED_UNROLL
  for (int half = 0; half < 2; ++half) {
    const float all = lanes_sum(sum[half]);
    factor[half] = all == 0.0F ? 0.0F : 1.0F / (all * a.dropout.kept);
    const int query = warp_query + row_in_warp(2 * half);
    if (lane_of() % 4 == 0 && query < a.queries) {
      a.log_sum_exp[static_cast<long long>(plane) * a.queries + query] =
          maximum[half] * ln_2 + logf(all);
    }
  }
  store_sum(a, a.out, b, h, warp_query, a.queries, factor, mixed);
}

// --- Backward ---

// Products of queries and keys become the pattern with dropout, and those of d_out and values the
// gradients of scores, not yet scaled. `place` says which pair an element is of: its query, its
// key, and what its query has.
template <Extras extras, class Place>
HEED_DEVICE void differentiate(const Sight& sight, const Dropping& dropping, const Scores& score,
                               bool whole, const Place& place, WarpSum<half_rows / 8>& pattern,
                               WarpSum<half_rows / 8>& gradient) {
  HEED_UNROLL
  for (int n = 0; n < half_rows / 8; ++n) {
    HEED_UNROLL
    for (int e = 0; e < 4; ++e) {
      const int query = place.query(n, e), key = place.key(n, e);
      const float scored = score_of<extras>(score, pattern.at[n][e], query, key);
      const float weight = rough_exp2(scored - place.log_sum_exp(n, e));
      float factor = 1.0F;
      if (drops<extras>(dropping)) {
        factor = dropping.keeps(place.dropout_key(n, e), key) ? dropping.keep_scale : 0.0F;
      }
      pattern.at[n][e] = weight * factor;
      gradient.at[n][e] = weight * (gradient.at[n][e] * factor - place.inner(n, e));
      if (extras == Extras::some && score.cap > 0.0F) {
        const float tanh = scored / score.cap;
        gradient.at[n][e] *= 1.0F - tanh * tanh;
      }
    }
  }
  if (whole) return;
  HEED_UNROLL
  for (int n = 0; n < half_rows / 8; ++n) {
    HEED_UNROLL
    for (int e = 0; e < 4; ++e) {
      // Of masked pairs nothing may survive, whatever it is.
      const bool seen = sight.of(place.query(n, e), place.key(n, e));
      pattern.at[n][e] = seen ? pattern.at[n][e] : 0.0F;
      gradient.at[n][e] = seen ? gradient.at[n][e] : 0.0F;
    }
  }
}

// Rows are keys, columns queries of which shared memory holds what they have.
struct KeysByQueries {
  int first_key, first_query;
  const float *log_sum_exps, *inners;
  const unsigned* dropout_keys;

  HEED_DEVICE int query(int n, int e) const { return first_query + column_in_sum(n, e); }
  HEED_DEVICE int key(int, int e) const { return first_key + row_in_warp(e); }
  HEED_DEVICE float log_sum_exp(int n, int e) const { return log_sum_exps[column_in_sum(n, e)]; }
  HEED_DEVICE float inner(int n, int e) const { return inners[column_in_sum(n, e)]; }
  HEED_DEVICE unsigned dropout_key(int n, int e) const { return dropout_keys[column_in_sum(n, e)]; }
};

// Rows are queries, columns keys.
struct QueriesByKeys {
  int first_query, first_key;
  const float (&log_sum_exps)[2], (&inners)[2];
  const unsigned (&dropout_keys)[2];

  HEED_DEVICE int query(int, int e) const { return first_query + row_in_warp(e); }
  HEED_DEVICE int key(int n, int e) const { return first_key + column_in_sum(n, e); }
  HEED_DEVICE float log_sum_exp(int, int e) const { return log_sum_exps[e / 2]; }
  HEED_DEVICE float inner(int, int e) const { return inners[e / 2]; }
  HEED_DEVICE unsigned dropout_key(int, int e) const { return dropout_keys[e / 2]; }
};

// A block has 128 rows of a key head, and sums over the queries that see them.
template <int size, Extras extras>
__global__ void __launch_bounds__(threads, size <= (extras == Extras::none ? 64 : 32) ? 2 : 1)
    bf16_memory_gradients(const __grid_constant__ HeedAttentionList list) {
  const HeedAttention& a = sequence_of(list, blockIdx.y);
  const int blocks = (a.memory + block_rows - 1) / block_rows, key_heads = a.heads / a.group;
  if (static_cast<int>(blockIdx.x) >= a.batch * key_heads * blocks) return;
  const int plane = static_cast<int>(blockIdx.x) / blocks;
  const int first_key = static_cast<int>(blockIdx.x) % blocks * block_rows;
  const int end_key = min(first_key + block_rows, a.memory);
  const int b = plane / key_heads, g = plane % key_heads;
  const int warp_key = first_key + warp_of() * warp_rows;

  constexpr int pitch = pitch_of(size), stage = backward_stage(size);
  Bf16* const keys = static_cast<Bf16*>(dynamic_shared_memory());
  Bf16* const values = keys + block_rows * pitch;
  Bf16* const queries = values + block_rows * pitch;
  Bf16* const d_outs = queries + stage * pitch;
  float* const log_sum_exps = reinterpret_cast<float*>(d_outs + stage * pitch);
  float* const inners = log_sum_exps + stage;
  unsigned* const dropout_keys = reinterpret_cast<unsigned*>(inners + stage);
  load_rounded<size, block_rows>(unrounded_rows(a, a.key, b, g, first_key, end_key), keys);
  load_rounded<size, block_rows>(unrounded_rows(a, a.value, b, g, first_key, end_key), values);
  const Bf16* const own_keys = keys + warp_of() * warp_rows * pitch;
  const Bf16* const own_values = values + warp_of() * warp_rows * pitch;

  const Sight sight(a);
  const Dropping dropping(a);
  WarpSum<size / 8> d_key, d_value;
  d_key.clear();
  d_value.clear();
  const int begin = max(first_key - a.visible, 0) / stage * stage;
  const int end = min(a.queries, end_key - 1 - a.visible + a.window);
  for (int h = g * a.group; h < (g + 1) * a.group; ++h) {
    const Scores score(a, h, log2_e);
    for (int t = begin; t < end; t += stage) {
      const int end_query = min(t + stage, a.queries);
      __syncthreads();
      load_rounded<size, stage>(unrounded_rows(a, a.query, b, h, t, end_query), queries);
      load_rounded<size, stage>(unrounded_rows(a, a.d_out, b, h, t, end_query), d_outs);
      const int own = static_cast<int>(threadIdx.x);
      if (own < stage) {
        const bool present = t + own < a.queries;
        const long long at =
            (static_cast<long long>(b) * a.heads + h) * a.queries + (present ? t + own : t);
        log_sum_exps[own] = a.log_sum_exp[at] * log2_e;
        inners[own] = a.inner[at];
        dropout_keys[own] = drops<extras>(dropping) ? dropout_key_of(a, b, h, t + own) : 0;
      }
      __syncthreads();
      for (int half = 0; half < stage; half += half_rows) {
        if (t + half >= end_query || !sight.of_any(t + half, half_rows, warp_key, warp_rows)) {
          continue;
        }
        WarpSum<half_rows / 8> pattern, gradient;
        pattern.clear();
        gradient.clear();
        pattern.template add_products_of_rows<size>(own_keys, queries + half * pitch);
        gradient.template add_products_of_rows<size>(own_values, d_outs + half * pitch);
        const KeysByQueries place{warp_key, t + half, log_sum_exps + half, inners + half,
                                  dropout_keys + half};
        differentiate<extras>(sight, dropping, score,
                              sight.of_all(t + half, half_rows, warp_key, warp_rows), place,
                              pattern, gradient);
        d_value.add_product(pattern, d_outs + half * pitch, pitch);
        d_key.add_product(gradient, queries + half * pitch, pitch);
      }
    }
  }
  const float one[2] = {1.0F, 1.0F}, scale[2] = {a.scale, a.scale};
  store_sum(a, a.d_value, b, g, warp_key, a.memory, one, d_value);
  store_sum(a, a.d_key, b, g, warp_key, a.memory, scale, d_key);
}

// The gradients of scores [query][key], for sums by distance.
constexpr int diagonal_pitch = half_rows + 1;

// Adds up what lies on each diagonal of 128 queries and 32 keys.
HEED_DEVICE void add_diagonals(const float* tile, int first_key, float* sums) {
  const int place = static_cast<int>(threadIdx.x);  // key - query + 127
  if (place >= block_rows + half_rows - 1) return;
  const int begin = max(block_rows - 1 - place, 0);
  const int end = min(block_rows + half_rows - 1 - place, block_rows);
  float sum = 0.0F;
  for (int query = begin; query < end; ++query) {
    sum += tile[query * diagonal_pitch + place - (block_rows - 1) + query];
  }
  sums[first_key + place] += sum;
}

// A block has 128 queries of a head.
template <int size, Extras extras>
__global__ void __launch_bounds__(threads, size <= 96 ? 2 : 1)
    bf16_query_gradients(const __grid_constant__ HeedAttentionList list) {
  const HeedAttention& a = sequence_of(list, blockIdx.y);
  const int blocks = (a.queries + block_rows - 1) / block_rows;
  if (static_cast<int>(blockIdx.x) >= a.batch * a.heads * blocks) return;
  const int plane = static_cast<int>(blockIdx.x) / blocks;
  const int block = blocks - 1 - static_cast<int>(blockIdx.x) % blocks;
  const int first_query = block * block_rows, end_query = min(first_query + block_rows, a.queries);
  const int b = plane / a.heads, h = plane % a.heads, g = h / a.group;
  const int warp_query = first_query + warp_of() * warp_rows;

  constexpr int pitch = pitch_of(size), stage = backward_stage(size);
  Bf16* const queries = static_cast<Bf16*>(dynamic_shared_memory());
  Bf16* const d_outs = queries + block_rows * pitch;
  Bf16* const keys = d_outs + block_rows * pitch;
  Bf16* const values = keys + stage * pitch;
  float* const diagonals = reinterpret_cast<float*>(values + stage * pitch);
  load_rounded<size, block_rows>(unrounded_rows(a, a.query, b, h, first_query, end_query), queries);
  load_rounded<size, block_rows>(unrounded_rows(a, a.d_out, b, h, first_query, end_query), d_outs);
  const Bf16* const own_queries = queries + warp_of() * warp_rows * pitch;
  const Bf16* const own_d_outs = d_outs + warp_of() * warp_rows * pitch;

  const Scores score(a, h, log2_e);
  const Sight sight(a);
  const Dropping dropping(a);
  float log_sum_exp[2], inner[2];
  unsigned dropout_key[2];
  HEED_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int query = warp_query + row_in_warp(2 * half);
    const long long at = static_cast<long long>(plane) * a.queries + min(query, a.queries - 1);
    log_sum_exp[half] = a.log_sum_exp[at] * log2_e;
    inner[half] = a.inner[at];
    dropout_key[half] = drops<extras>(dropping) ? dropout_key_of(a, b, h, query) : 0;
  }
  float* sums = nullptr;
  if (extras == Extras::some && a.partial_bias != nullptr) {
    sums = a.partial_bias + (static_cast<long long>(plane) * blocks + block) * a.bias_width;
    for (int i = static_cast<int>(threadIdx.x); i < a.bias_width; i += threads) sums[i] = 0.0F;
  }
  WarpSum<size / 8> d_query;
  d_query.clear();
  const int begin = sight.begin(first_query) / stage * stage;
  const int end = sight.end(end_query - 1);
  for (int s = begin; s < end; s += stage) {
    const int end_key = min(s + stage, a.memory);
    __syncthreads();
    load_rounded<size, stage>(unrounded_rows(a, a.key, b, g, s, end_key), keys);
    load_rounded<size, stage>(unrounded_rows(a, a.value, b, g, s, end_key), values);
    __syncthreads();
    for (int half = 0; half < stage; half += half_rows) {
      const bool seen = sight.of_any(warp_query, warp_rows, s + half, half_rows);
      if (!seen && sums == nullptr) continue;
      WarpSum<half_rows / 8> pattern, gradient;
      pattern.clear();
      gradient.clear();
      pattern.template add_products_of_rows<size>(own_queries, keys + half * pitch);
      gradient.template add_products_of_rows<size>(own_d_outs, values + half * pitch);
      const QueriesByKeys place{warp_query, s + half, log_sum_exp, inner, dropout_key};
      differentiate<extras>(sight, dropping, score,
                            sight.of_all(warp_query, warp_rows, s + half, half_rows), place,
                            pattern, gradient);
      d_query.add_product(gradient, keys + half * pitch, pitch);
      if (sums == nullptr) continue;
      __syncthreads();
      HEED_UNROLL
      for (int n = 0; n < half_rows / 8; ++n) {
        HEED_UNROLL
        for (int e = 0; e < 4; ++e) {
          diagonals[(warp_of() * warp_rows + row_in_warp(e)) * diagonal_pitch +
                    column_in_sum(n, e)] = gradient.at[n][e];
        }
      }
      __syncthreads();
      add_diagonals(diagonals, s + half, sums);
    }
  }
  const float scale[2] = {a.scale, a.scale};
  store_sum(a, a.d_query, b, h, warp_query, a.queries, scale, d_query);
}

// --- Launches ---

using Kernel = void (*)(HeedAttentionList);

// Kernels of heads padded to 32, 64, 96, 128 and, forward, 256 channels, without extras and with
// them. They have so many operands of a block and two of a stage in shared memory, and more bytes.
struct Padded {
  Kernel kernels[2][5];
  int block_operands;
  int (*stage)(int size);
  size_t more;
};

HeedCudaResult launch_padded(const Padded& padded, const HeedAttentionList& list) {
  const int index = list.head_size > 128 ? 4 : (list.head_size + 31) / 32 - 1;
  const int size = index == 4 ? 256 : 32 * (index + 1);
  const int rows = padded.block_operands * block_rows + 2 * padded.stage(size);
  const size_t bytes = static_cast<size_t>(rows * pitch_of(size)) * sizeof(Bf16);
  return launch(padded.kernels[list.extras][index],
                dim3(static_cast<unsigned>(list.blocks), static_cast<unsigned>(list.count)),
                dim3(threads), bytes + padded.more, list);
}

}  // namespace
}  // namespace heed_cuda

#define HEED_OF_SIZES(kernel, extras) \
  kernel<32, extras>, kernel<64, extras>, kernel<96, extras>, kernel<128, extras>

extern "C" {

HeedCudaResult heed_cuda_attention_bf16_forward(const HeedAttentionList* list) {
  using namespace heed_cuda;
  return launch_padded(
      {{{HEED_OF_SIZES(bf16_forward, Extras::none), bf16_forward<256, Extras::none>},
        {HEED_OF_SIZES(bf16_forward, Extras::some), bf16_forward<256, Extras::some>}},
       1,
       forward_stage,
       0},
      *list);
}

HeedCudaResult heed_cuda_attention_bf16_memory_gradients(const HeedAttentionList* list) {
  using namespace heed_cuda;
  return launch_padded({{{HEED_OF_SIZES(bf16_memory_gradients, Extras::none)},
                         {HEED_OF_SIZES(bf16_memory_gradients, Extras::some)}},
                        2,
                        backward_stage,
                        3 * stage_rows * sizeof(float)},
                       *list);
}

HeedCudaResult heed_cuda_attention_bf16_query_gradients(const HeedAttentionList* list) {
  using namespace heed_cuda;
  const size_t diagonals =
      list->one.partial_bias == nullptr ? 0 : block_rows * diagonal_pitch * sizeof(float);
  return launch_padded({{{HEED_OF_SIZES(bf16_query_gradients, Extras::none)},
                         {HEED_OF_SIZES(bf16_query_gradients, Extras::some)}},
                        2,
                        backward_stage,
                        diagonals},
                       *list);
}

}  // extern "C"
