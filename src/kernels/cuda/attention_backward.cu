// Attention backward in f32, from the log-sum-exps of forward: tiles of the pattern are computed
// again, once for the gradients of keys and values and once for those of queries, so that each sum
// has one block and one order. Products in f32 limit both kernels.
#include "kernels/cuda/attention_code.h"

namespace heed_cuda {
namespace {

HEED_DEVICE int tiles_of(int rows) { return (rows + tile_rows - 1) / tile_rows; }

// --- Sums of out * d_out: a warp has a row, and memory limits it ---

constexpr int inner_threads = 256;

__global__ void __launch_bounds__(inner_threads)
    inner_products(const __grid_constant__ HeedAttentionList list) {
  const HeedAttention& a = sequence_of(list, blockIdx.y);
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  const long long row = static_cast<long long>(blockIdx.x) * (inner_threads / warp_lanes) + warp;
  if (row >= static_cast<long long>(a.batch) * a.queries * a.heads) return;
  // Heads of a position lie side by side.
  const int h = static_cast<int>(row % a.heads);
  const int t = static_cast<int>(row / a.heads % a.queries);
  const int b = static_cast<int>(row / a.heads / a.queries);
  const char* const out = row_of<char>(a.out, b, t, h);
  const char* const d_out = row_of<char>(a.d_out, b, t, h);
  float sum = 0.0F;
  for (int at = 4 * lane; at < a.head_size; at += 4 * warp_lanes) {
    const int left = a.head_size - at;
    const float4 x = load_four<HEED_ROWS_F32>(out, at, left, width_of(a.out), 1.0F);
    const float4 y = load_four<HEED_ROWS_F32>(d_out, at, left, width_of(a.d_out), 1.0F);
    sum += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
  }
  sum = warp_sum(sum);
  if (lane == 0) {
    a.inner[(static_cast<long long>(b) * a.heads + h) * a.queries + t] = sum;
  }
}

// --- A tile of the pattern, and the gradient of its scores ---

// Of the rows of a thread.
struct QueryRows {
  float log_sum_exp[4];  // in powers of two
  float inner[4];
  unsigned dropout_key[4];

  HEED_DEVICE void load(const HeedAttention& a, int b, int h, int first_query) {
    HEED_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int query = first_query + tile_row() + i;
      const bool present = query < a.queries;
      const long long at =
          (static_cast<long long>(b) * a.heads + h) * a.queries + (present ? query : 0);
      log_sum_exp[i] = present ? a.log_sum_exp[at] * log2_e : 0.0F;
      inner[i] = present ? a.inner[at] : 0.0F;
      dropout_key[i] = a.dropout.threshold != 0 ? dropout_key_of(a, b, h, query) : 0;
    }
  }
};

// Products of queries and keys become the pattern that forward mixed values with, and those of
// d_out and values the gradients of scores, not yet scaled.
HEED_DEVICE void differentiate(const HeedAttention& a, const Sight& sight, const Scores& score,
                               const QueryRows& rows, int first_query, int first_key,
                               TileSum& pattern, TileSum& gradient) {
  const Dropping dropping(a);
  const bool rounds = a.rounds != 0;
  const bool whole = sight.of_all(first_query, tile_rows, first_key, tile_rows);
  HEED_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int query = first_query + tile_row() + i;
    HEED_UNROLL
    for (int j = 0; j < 4; ++j) {
      const int key = first_key + tile_column() + j;
      const float scored = score.of(pattern.at[i][j], query, key);
      const float weight = exp2f(scored - rows.log_sum_exp[i]);
      float factor = 1.0F;
      if (dropping.drops()) {
        factor = dropping.keeps(rows.dropout_key[i], key) ? dropping.keep_scale : 0.0F;
      }
      float kept = weight * factor;
      float d_score = weight * (gradient.at[i][j] * factor - rows.inner[i]);
      if (score.cap > 0.0F) {
        const float tanh = scored / score.cap;
        d_score *= 1.0F - tanh * tanh;
      }
      if (rounds) {
        kept = rounded_to_bf16(kept);
        d_score = rounded_to_bf16(d_score);
      }
      // Of masked pairs nothing may survive, whatever it is.
      const bool seen = whole || sight.of(query, key);
      pattern.at[i][j] = seen ? kept : 0.0F;
      gradient.at[i][j] = seen ? d_score : 0.0F;
    }
  }
}

HEED_DEVICE void store_rows(const HeedAttention& a, const HeedHeads& heads, int b, int head,
                            int first_row, int rows, int first_column, float factor,
                            const TileSum& sum) {
  HEED_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int row = first_row + tile_row() + i, column = first_column + tile_column();
    if (row >= rows) break;
    const float(&numbers)[4] = sum.at[i];
    store_four(row_of<float>(heads, b, row, head) + column, a.head_size - column, width_of(heads),
               make_float4(factor * numbers[0], factor * numbers[1], factor * numbers[2],
                           factor * numbers[3]));
  }
}

// --- Gradients of keys and values: a block has 64 rows of a key head ---

template <int chunks>
__global__ void __launch_bounds__(tile_threads, chunks == 1 ? 2 : 1)
    memory_gradients(const __grid_constant__ HeedAttentionList list) {
  const HeedAttention& a = sequence_of(list, blockIdx.y);
  const int blocks = tiles_of(a.memory), key_heads = a.heads / a.group;
  const int first_column = static_cast<int>(blockIdx.z) * chunks * tile_rows;
  if (static_cast<int>(blockIdx.x) >= a.batch * key_heads * blocks || first_column >= a.head_size) {
    return;
  }
  // The first keys first: under a causal mask most queries see them.
  const int plane = static_cast<int>(blockIdx.x) / blocks;
  const int first_key = static_cast<int>(blockIdx.x) % blocks * tile_rows;
  const int b = plane / key_heads, g = plane % key_heads;
  const int end_key = min(first_key + tile_rows, a.memory);

  float* const pattern_room = static_cast<float*>(dynamic_shared_memory());
  float* const gradient_room = pattern_room + tile_floats;
  float* const x_room = gradient_room + tile_floats;
  float* const y_room = x_room + tile_floats;
  const auto key = float_rows(a, a.key, b, g, first_key, end_key);
  const auto value = float_rows(a, a.value, b, g, first_key, end_key);
  TileSum d_key[chunks], d_value[chunks];
  HEED_UNROLL
  for (int chunk = 0; chunk < chunks; ++chunk) {
    d_key[chunk].clear();
    d_value[chunk].clear();
  }
  const Sight sight(a);
  const int begin = max(first_key - a.visible, 0) / tile_rows * tile_rows;
  const int end = min(a.queries, end_key - 1 - a.visible + a.window);
  for (int h = g * a.group; h < (g + 1) * a.group; ++h) {
    const Scores score(a, h, log2_e);
    for (int t = begin; t < end; t += tile_rows) {
      const int end_query = min(t + tile_rows, a.queries);
      const auto query = float_rows(a, a.query, b, h, t, end_query);
      const auto d_out = float_rows(a, a.d_out, b, h, t, end_query);
      TileSum pattern, gradient;
      multiply_rows(query, key, x_room, y_room, pattern);
      multiply_rows(d_out, value, x_room, y_room, gradient);
      QueryRows rows;
      rows.load(a, b, h, t);
      differentiate(a, sight, score, rows, t, first_key, pattern, gradient);
      pattern.store(pattern_room);
      gradient.store(gradient_room);
      HEED_UNROLL
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const int column = first_column + chunk * tile_rows;
        if (column >= a.head_size) break;
        __syncthreads();
        load_tile(d_out, column, x_room);
        load_tile(query, column, y_room);
        __syncthreads();
        d_value[chunk].add_product(pattern_room, x_room, end_query - t);
        d_key[chunk].add_product(gradient_room, y_room, end_query - t);
      }
    }
  }
  HEED_UNROLL
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const int column = first_column + chunk * tile_rows;
    store_rows(a, a.d_value, b, g, first_key, a.memory, column, 1.0F, d_value[chunk]);
    store_rows(a, a.d_key, b, g, first_key, a.memory, column, a.scale, d_key[chunk]);
  }
}

// --- Gradients of queries, and of position biases: a block has 64 queries of a head ---

// Adds up what lies on each diagonal of a tile [key][query]: one distance each.
HEED_DEVICE void add_diagonals(const float* tile, int first_key, float* sums) {
  const int place = static_cast<int>(threadIdx.x);  // key - query + 63
  if (place >= 2 * tile_rows - 1) return;
  const int begin = max(tile_rows - 1 - place, 0), end = min(2 * tile_rows - 1 - place, tile_rows);
  float sum = 0.0F;
  for (int query = begin; query < end; ++query) {
    sum += tile[(place - (tile_rows - 1) + query) * tile_pitch + query];
  }
  sums[first_key + place] += sum;
}

template <int chunks>
__global__ void __launch_bounds__(tile_threads, 2)
    query_gradients(const __grid_constant__ HeedAttentionList list) {
  const HeedAttention& a = sequence_of(list, blockIdx.y);
  const int blocks = tiles_of(a.queries);
  const int first_column = static_cast<int>(blockIdx.z) * chunks * tile_rows;
  if (static_cast<int>(blockIdx.x) >= a.batch * a.heads * blocks || first_column >= a.head_size) {
    return;
  }
  const int plane = static_cast<int>(blockIdx.x) / blocks;
  const int block = blocks - 1 - static_cast<int>(blockIdx.x) % blocks;
  const int first_query = block * tile_rows;
  const int b = plane / a.heads, h = plane % a.heads, g = h / a.group;
  const int end_query = min(first_query + tile_rows, a.queries);

  float* const gradient_room = static_cast<float*>(dynamic_shared_memory());
  float* const x_room = gradient_room + tile_floats;
  float* const y_room = x_room + tile_floats;
  const auto query = float_rows(a, a.query, b, h, first_query, end_query);
  const auto d_out = float_rows(a, a.d_out, b, h, first_query, end_query);
  const Scores score(a, h, log2_e);
  const Sight sight(a);
  QueryRows rows;
  rows.load(a, b, h, first_query);
  TileSum d_query[chunks];
  HEED_UNROLL
  for (int chunk = 0; chunk < chunks; ++chunk) d_query[chunk].clear();
  float* sums = nullptr;
  if (a.partial_bias != nullptr && blockIdx.z == 0) {
    sums = a.partial_bias + (static_cast<long long>(plane) * blocks + block) * a.bias_width;
    for (int i = static_cast<int>(threadIdx.x); i < a.bias_width; i += tile_threads) sums[i] = 0.0F;
  }

  const int begin = sight.begin(first_query) / tile_rows * tile_rows;
  const int end = sight.end(end_query - 1);
  for (int s = begin; s < end; s += tile_rows) {
    const int end_key = min(s + tile_rows, a.memory);
    const auto key = float_rows(a, a.key, b, g, s, end_key);
    const auto value = float_rows(a, a.value, b, g, s, end_key);
    TileSum pattern, gradient;
    multiply_rows(query, key, x_room, y_room, pattern);
    multiply_rows(d_out, value, x_room, y_room, gradient);
    differentiate(a, sight, score, rows, first_query, s, pattern, gradient);
    gradient.store_transposed(gradient_room);
    HEED_UNROLL
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int column = first_column + chunk * tile_rows;
      if (column >= a.head_size) break;
      __syncthreads();
      load_tile(key, column, x_room);
      __syncthreads();
      d_query[chunk].add_product(gradient_room, x_room, end_key - s);
    }
    if (sums != nullptr) add_diagonals(gradient_room, s, sums);
  }
  HEED_UNROLL
  for (int chunk = 0; chunk < chunks; ++chunk) {
    store_rows(a, a.d_query, b, h, first_query, a.queries, first_column + chunk * tile_rows,
               a.scale, d_query[chunk]);
  }
}

// Of one distance of a head, by each thread: over the batch, then over blocks of queries.
constexpr int bias_threads = 128;

__global__ void __launch_bounds__(bias_threads)
    add_bias_gradient(const __grid_constant__ HeedBiasGradient operands) {
  const HeedBiasGradient& o = operands;
  const int at = static_cast<int>(first_item()), h = static_cast<int>(blockIdx.y);
  if (at >= o.distances) return;
  float sum = 0.0F;
  for (int b = 0; b < o.batch; ++b) {
    for (int block = 0; block < o.blocks; ++block) {
      const int place = o.first_place + at + block * o.block_rows;
      if (place < 0 || place >= o.width) continue;
      const long long row = (static_cast<long long>(b) * o.heads + h) * o.blocks + block;
      sum += o.partial[row * o.width + place];
    }
  }
  o.gradient[h * o.head + at * o.element] += sum;
}

// --- Launches ---

HeedCudaResult launch_tiles(void (*one)(HeedAttentionList), void (*two)(HeedAttentionList),
                            int rooms, const HeedAttentionList& list) {
  const int chunks = (list.head_size + tile_rows - 1) / tile_rows;
  const auto columns = static_cast<unsigned>((chunks + 1) / 2);
  const dim3 grid(static_cast<unsigned>(list.blocks), static_cast<unsigned>(list.count), columns);
  const size_t bytes = sizeof(float) * static_cast<size_t>(rooms * tile_floats);
  return launch(chunks == 1 ? one : two, grid, dim3(tile_threads), bytes, list);
}

}  // namespace
}  // namespace heed_cuda

extern "C" {

HeedCudaResult heed_cuda_attention_inner_products(const HeedAttentionList* list) {
  return heed_cuda::launch(
      heed_cuda::inner_products,
      dim3(static_cast<unsigned>(list->blocks), static_cast<unsigned>(list->count)),
      dim3(heed_cuda::inner_threads), 0, *list);
}

HeedCudaResult heed_cuda_attention_memory_gradients(const HeedAttentionList* list) {
  return heed_cuda::launch_tiles(heed_cuda::memory_gradients<1>, heed_cuda::memory_gradients<2>, 4,
                                 *list);
}

HeedCudaResult heed_cuda_attention_query_gradients(const HeedAttentionList* list) {
  return heed_cuda::launch_tiles(heed_cuda::query_gradients<1>, heed_cuda::query_gradients<2>, 3,
                                 *list);
}

HeedCudaResult heed_cuda_attention_bias_gradient(const HeedBiasGradient* operands) {
  const auto columns = static_cast<unsigned>((operands->distances + heed_cuda::bias_threads - 1) /
                                             heed_cuda::bias_threads);
  return heed_cuda::launch(heed_cuda::add_bias_gradient,
                           dim3(columns, static_cast<unsigned>(operands->heads)),
                           dim3(heed_cuda::bias_threads), 0, *operands);
}

}  // extern "C"
