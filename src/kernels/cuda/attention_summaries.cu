// Rectangles of scores and patterns, pooled ones, and row statistics: tiles of 64 x 64 whose scores
// are computed again. Products in f32 limit all of them.
#include "kernels/cuda/attention_code.h"

namespace heed_cuda {
namespace {

constexpr size_t two_rooms = 2 * tile_floats * sizeof(float);

// log-sum-exps of the rows of a thread, in powers of two.
HEED_DEVICE void load_normalisers(const HeedAttention& a, int b, int h, int first_query,
                                  float (&normalisers)[4]) {
  const float* const head = a.log_sum_exp + (static_cast<long long>(b) * a.heads + h) * a.queries;
  HEED_UNROLL
  for (int i = 0; i < 4; ++i) {
    normalisers[i] = head[min(first_query + tile_row() + i, a.queries - 1)] * log2_e;
  }
}

// --- Rectangles: a block has a tile, counted from the rectangle's corner ---

// Scores, -infinity where masked; or weights, 0 there.
HEED_DEVICE void tile_values(const HeedAttentionTile& o, int first_query, int first_key,
                             float* x_room, float* y_room, TileSum& values) {
  const HeedAttention& a = o.attention;
  const bool of_pattern = o.of_pattern != 0;
  const Sight sight(a);
  const auto query = float_rows(a, a.query, o.batch, o.head, first_query,
                                min(first_query + tile_rows, o.query_end));
  const auto key = float_rows(a, a.key, o.batch, o.head / a.group, first_key,
                              min(first_key + tile_rows, o.key_end));
  multiply_rows(query, key, x_room, y_room, values);
  const Scores score(a, o.head, of_pattern ? log2_e : 1.0F);
  float normalisers[4] = {};
  if (of_pattern) load_normalisers(a, o.batch, o.head, first_query, normalisers);
  HEED_UNROLL
  for (int i = 0; i < 4; ++i) {
    HEED_UNROLL
    for (int j = 0; j < 4; ++j) {
      const int t = first_query + tile_row() + i, s = first_key + tile_column() + j;
      const bool seen = sight.of(t, s);
      const float value = score.of(values.at[i][j], t, s);
      if (of_pattern) {
        values.at[i][j] = seen ? exp2f(value - normalisers[i]) : 0.0F;
      } else {
        values.at[i][j] = seen ? value : minus_infinity();
      }
    }
  }
}

__global__ void __launch_bounds__(tile_threads, 2)
    rectangle(const __grid_constant__ HeedAttentionTile operands) {
  const HeedAttentionTile& o = operands;
  const int first_query = o.query_begin + static_cast<int>(blockIdx.y) * tile_rows;
  const int first_key = o.key_begin + static_cast<int>(blockIdx.x) * tile_rows;
  float* const room = static_cast<float*>(dynamic_shared_memory());
  TileSum values;
  tile_values(o, first_query, first_key, room, room + tile_floats, values);
  HEED_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int t = first_query + tile_row() + i;
    HEED_UNROLL
    for (int j = 0; j < 4; ++j) {
      const int s = first_key + tile_column() + j;
      if (t >= o.query_end || s >= o.key_end) continue;
      o.out[(t - o.query_begin) * o.out_row + s - o.key_begin] = values.at[i][j];
    }
  }
}

__global__ void __launch_bounds__(tile_threads, 2)
    pooled_rectangle(const __grid_constant__ HeedAttentionTile operands) {
  const HeedAttentionTile& o = operands;
  const int first_query = o.query_begin + static_cast<int>(blockIdx.y) * tile_rows;
  const int first_key = o.key_begin + static_cast<int>(blockIdx.x) * tile_rows;
  float* const room = static_cast<float*>(dynamic_shared_memory());
  float* const sums = room + tile_floats;  // of rows of cells
  float* const most = sums + tile_rows * tile_rows;
  TileSum values;
  tile_values(o, first_query, first_key, room, sums, values);
  __syncthreads();
  values.store(room);
  __syncthreads();
  const int rows = min(o.query_end - first_query, tile_rows);
  const int columns = min(o.key_end - first_key, tile_rows);
  const int cells = (columns + o.pool - 1) / o.pool, cell_rows = (rows + o.pool - 1) / o.pool;
  const float lowest = o.of_pattern != 0 ? 0.0F : minus_infinity();
  for (int i = static_cast<int>(threadIdx.x); i < rows * cells; i += tile_threads) {
    const int row = i / cells, begin = i % cells * o.pool;
    float sum = 0.0F, largest = lowest;
    for (int column = begin; column < min(begin + o.pool, columns); ++column) {
      const float value = room[row * tile_pitch + column];
      if (value == minus_infinity()) continue;  // masked
      sum += value;
      largest = fmaxf(largest, value);
    }
    sums[i] = sum;
    most[i] = largest;
  }
  __syncthreads();
  const int per_tile = tile_rows / o.pool;
  for (int i = static_cast<int>(threadIdx.x); i < cell_rows * cells; i += tile_threads) {
    const int begin = i / cells * o.pool, column = i % cells;
    float sum = 0.0F, largest = lowest;
    for (int row = begin; row < min(begin + o.pool, rows); ++row) {
      sum += sums[row * cells + column];
      largest = fmaxf(largest, most[row * cells + column]);
    }
    const long long to_row = static_cast<long long>(blockIdx.y) * per_tile + i / cells;
    const long long to_column = static_cast<long long>(blockIdx.x) * per_tile + column;
    o.sum[to_row * o.sum_row + to_column] = sum;
    o.largest[to_row * o.largest_row + to_column] = largest;
  }
}

// --- Row statistics: a block has 64 queries of a head ---

// Of a row, each thread's share.
struct RowSums {
  float entropy = 0.0F, distance = 0.0F, first = 0.0F, self = 0.0F, previous = 0.0F;
  float duplicate = 0.0F, induction = 0.0F, largest = 0.0F;

  // A weight, and its power of two, of a key that the query at `own` sees.
  HEED_DEVICE void add(float weight, float power, int own, int key, bool full) {
    if (weight > 0.0F) entropy -= weight * power;
    distance += weight * static_cast<float>(own - key);
    if (key == 0) first += weight;
    if (key == own) self += weight;
    if (key == own - 1) previous += weight;
    if (full ? key != own : key >= 1 && key < own - 1) largest = fmaxf(largest, weight);
  }

  HEED_DEVICE void add_tokens(float weight, int own, int key, bool full, const int* tokens) {
    const int token = tokens[own];
    if (key != own && tokens[key] == token) duplicate += weight;
    const bool follows = key >= 1 && tokens[key - 1] == token;
    if (follows && (!full || (key != own && key != own + 1))) induction += weight;
  }
};

__global__ void __launch_bounds__(tile_threads, 2)
    row_statistics(const __grid_constant__ HeedRowStatistics operands) {
  const HeedRowStatistics& o = operands;
  const HeedAttention& a = o.attention;
  const int blocks = (a.queries + tile_rows - 1) / tile_rows;
  const int plane = static_cast<int>(blockIdx.x) / blocks;
  const int first_query = (blocks - 1 - static_cast<int>(blockIdx.x) % blocks) * tile_rows;
  const int b = plane / a.heads, h = plane % a.heads, g = h / a.group;
  const int end_query = min(first_query + tile_rows, a.queries), unseen = a.memory - a.queries;
  const int* const tokens =
      o.tokens == nullptr ? nullptr : o.tokens + static_cast<long long>(b) * a.memory;
  const bool full = o.full != 0;
  float* const room = static_cast<float*>(dynamic_shared_memory());
  const auto query = float_rows(a, a.query, b, h, first_query, end_query);
  const Scores score(a, h, log2_e);
  float normalisers[4];
  load_normalisers(a, b, h, first_query, normalisers);
  RowSums sums[4];
  const Sight sight(a);
  const int begin = sight.begin(first_query) / tile_rows * tile_rows;
  const int end = sight.end(end_query - 1);
  for (int key = begin; key < end; key += tile_rows) {
    const auto keys = float_rows(a, a.key, b, g, key, min(key + tile_rows, a.memory));
    TileSum products;
    multiply_rows(query, keys, room, room + tile_floats, products);
    HEED_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int t = first_query + tile_row() + i, own = unseen + t;
      HEED_UNROLL
      for (int j = 0; j < 4; ++j) {
        const int s = key + tile_column() + j;
        if (!sight.of(t, s)) continue;
        const float power = score.of(products.at[i][j], t, s) - normalisers[i];
        const float weight = exp2f(power);
        sums[i].add(weight, power, own, s, full);
        if (tokens != nullptr) sums[i].add_tokens(weight, own, s, full, tokens);
      }
    }
  }
  HEED_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int t = first_query + tile_row() + i;
    RowSums& row = sums[i];
    row.entropy = row_sum(row.entropy) * ln_2;
    row.distance = row_sum(row.distance);
    row.first = row_sum(row.first);
    row.self = row_sum(row.self);
    row.previous = row_sum(row.previous);
    row.duplicate = row_sum(row.duplicate);
    row.induction = row_sum(row.induction);
    row.largest = row_max(row.largest);
    if (tile_column() != 0 || t >= a.queries) continue;
    const long long at = static_cast<long long>(plane) * a.queries + t;
    o.entropy[at] = row.entropy;
    o.distance[at] = row.distance;
    o.first[at] = row.first;
    o.self[at] = row.self;
    o.previous[at] = row.previous;
    o.duplicate[at] = row.duplicate;
    o.induction[at] = row.induction;
    o.largest[at] = row.largest;
  }
}

dim3 tiles_of_rectangle(const HeedAttentionTile& o) {
  return dim3(static_cast<unsigned>((o.key_end - o.key_begin + tile_rows - 1) / tile_rows),
              static_cast<unsigned>((o.query_end - o.query_begin + tile_rows - 1) / tile_rows));
}

}  // namespace
}  // namespace heed_cuda

extern "C" {

HeedCudaResult heed_cuda_attention_rectangle(const HeedAttentionTile* operands) {
  return heed_cuda::launch(heed_cuda::rectangle, heed_cuda::tiles_of_rectangle(*operands),
                           dim3(heed_cuda::tile_threads), heed_cuda::two_rooms, *operands);
}

HeedCudaResult heed_cuda_attention_pooled_rectangle(const HeedAttentionTile* operands) {
  constexpr size_t bytes =
      sizeof(float) * (heed_cuda::tile_floats + 2 * heed_cuda::tile_rows * heed_cuda::tile_rows);
  return heed_cuda::launch(heed_cuda::pooled_rectangle, heed_cuda::tiles_of_rectangle(*operands),
                           dim3(heed_cuda::tile_threads), bytes, *operands);
}

HeedCudaResult heed_cuda_attention_row_statistics(const HeedRowStatistics* operands) {
  const HeedAttention& a = operands->attention;
  const int blocks =
      a.batch * a.heads * ((a.queries + heed_cuda::tile_rows - 1) / heed_cuda::tile_rows);
  return heed_cuda::launch(heed_cuda::row_statistics, dim3(static_cast<unsigned>(blocks)),
                           dim3(heed_cuda::tile_threads), heed_cuda::two_rooms, *operands);
}

}  // extern "C"
