// Attention forward in f32: tiles of 64 queries and 64 keys, and parts of the memory for few
// queries. Neither has a (T, S) buffer.
#include "kernels/cuda/attention_code.h"

namespace heed_cuda {
namespace {

// --- Tiles ---

// A block has 64 queries of a head and 64 or 128 channels of the result: heads of more channels
// are left to several blocks, which compute the scores again. Products in f32 limit it.
constexpr int resident_chunks = 2;  // queries of up to 128 channels stay in shared memory

HEED_DEVICE int tiles_of(int rows) { return (rows + tile_rows - 1) / tile_rows; }

struct RunningSoftmax {
  float maximum[4], sum[4];  // of the rows of a thread; each thread has a share of a sum
  unsigned dropout_key[4];

  // Scores in powers of two become weights, and the factors of what was summed before.
  HEED_DEVICE void weigh(const HeedAttention& a, const Sight& sight, int first_query, int first_key,
                         TileSum& scores, float (&rescale)[4]) {
    const Dropping dropping(a);
    const bool rounds = a.rounds != 0;
    const bool masked = !sight.of_all(first_query, tile_rows, first_key, tile_rows);
    HEED_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int query = first_query + tile_row() + i, key = first_key + tile_column();
      if (masked) {
        HEED_UNROLL
        for (int j = 0; j < 4; ++j) {
          if (!sight.of(query, key + j)) scores.at[i][j] = minus_infinity();
        }
      }
      const float largest = row_max(
          fmaxf(fmaxf(scores.at[i][0], scores.at[i][1]), fmaxf(scores.at[i][2], scores.at[i][3])));
      const float before = maximum[i];
      maximum[i] = fmaxf(before, largest);
      // A query may have seen nothing yet.
      const float reference = maximum[i] == minus_infinity() ? 0.0F : maximum[i];
      rescale[i] = exp2f(before - reference);
      float weights = 0.0F;
      HEED_UNROLL
      for (int j = 0; j < 4; ++j) {
        float weight = exp2f(scores.at[i][j] - reference);
        weights += weight;
        if (dropping.drops() && !dropping.keeps(dropout_key[i], key + j)) weight = 0.0F;
        scores.at[i][j] = rounds ? rounded_to_bf16(weight) : weight;
      }
      sum[i] = sum[i] * rescale[i] + weights;
    }
  }
};

template <int type, int value_chunks>
__global__ void __launch_bounds__(tile_threads, 2)
    tiles_forward(const __grid_constant__ HeedAttentionList list) {
  const HeedAttention& a = sequence_of(list, blockIdx.y);
  const int blocks = tiles_of(a.queries);
  const int first_column = static_cast<int>(blockIdx.z) * value_chunks * tile_rows;
  if (static_cast<int>(blockIdx.x) >= a.batch * a.heads * blocks || first_column >= a.head_size) {
    return;
  }
  // The last queries first: under a causal mask they take longest.
  const int plane = static_cast<int>(blockIdx.x) / blocks;
  const int first_query = (blocks - 1 - static_cast<int>(blockIdx.x) % blocks) * tile_rows;
  const int b = plane / a.heads, h = plane % a.heads, g = h / a.group;
  const int end_query = min(first_query + tile_rows, a.queries);

  float* const weights = static_cast<float*>(dynamic_shared_memory());
  float* const stage = weights + tile_floats;  // of keys, then of values
  float* const query_room = stage + tile_floats;
  const HeadRows<HEED_ROWS_F32> query = float_rows(a, a.query, b, h, first_query, end_query);
  const int chunks = tiles_of(a.head_size);
  const bool resident = chunks <= resident_chunks;
  if (resident) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      load_transposed(query, chunk * tile_rows, query_room + chunk * tile_floats);
    }
  }

  const Scores score(a, h, log2_e);
  RunningSoftmax softmax;
  TileSum mixed[value_chunks];
  for (int i = 0; i < 4; ++i) {
    softmax.maximum[i] = minus_infinity();
    softmax.sum[i] = 0.0F;
    softmax.dropout_key[i] =
        a.dropout.threshold != 0 ? dropout_key_of(a, b, h, first_query + tile_row() + i) : 0;
  }
  HEED_UNROLL
  for (int chunk = 0; chunk < value_chunks; ++chunk) mixed[chunk].clear();

  const Sight sight(a);
  const int begin = sight.begin(first_query) / tile_rows * tile_rows;
  const int end = sight.end(end_query - 1);
  for (int key = begin; key < end; key += tile_rows) {
    const int key_count = min(key + tile_rows, a.memory);
    const auto keys = memory_rows<type>(a, a.key, a.key_scales, b, g, key, key_count);
    TileSum scores;
    scores.clear();
    for (int chunk = 0; chunk < chunks; ++chunk) {
      float* const queries = query_room + (resident ? chunk * tile_floats : 0);
      __syncthreads();
      if (!resident) load_transposed(query, chunk * tile_rows, queries);
      load_transposed(keys, chunk * tile_rows, stage);
      __syncthreads();
      scores.add_product(queries, stage, min(a.head_size - chunk * tile_rows, tile_rows));
    }
    HEED_UNROLL
    for (int i = 0; i < 4; ++i) {
      HEED_UNROLL
      for (int j = 0; j < 4; ++j) {
        scores.at[i][j] =
            score.of(scores.at[i][j], first_query + tile_row() + i, key + tile_column() + j);
      }
    }
    float rescale[4];
    softmax.weigh(a, sight, first_query, key, scores, rescale);
    scores.store_transposed(weights);
    const auto values = memory_rows<type>(a, a.value, a.value_scales, b, g, key, key_count);
    HEED_UNROLL
    for (int chunk = 0; chunk < value_chunks; ++chunk) {
      const int column = first_column + chunk * tile_rows;
      if (column >= a.head_size) break;
      __syncthreads();
      load_tile(values, column, stage);
      HEED_UNROLL
      for (int i = 0; i < 4; ++i) {
        HEED_UNROLL
        for (int j = 0; j < 4; ++j) mixed[chunk].at[i][j] *= rescale[i];
      }
      __syncthreads();
      mixed[chunk].add_product(weights, stage, min(a.memory - key, tile_rows));
    }
  }

  HEED_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int t = first_query + tile_row() + i;
    const float sum = row_sum(softmax.sum[i]);
    if (t >= a.queries) continue;
    // 0: the query sees nothing of the memory.
    const float factor = sum == 0.0F ? 0.0F : 1.0F / (sum * a.dropout.kept);
    float* const out = row_of<float>(a.out, b, t, h);
    HEED_UNROLL
    for (int chunk = 0; chunk < value_chunks; ++chunk) {
      const int column = first_column + chunk * tile_rows + tile_column();
      const float(&row)[4] = mixed[chunk].at[i];
      store_four(out + column, a.head_size - column, width_of(a.out),
                 make_float4(row[0] * factor, row[1] * factor, row[2] * factor, row[3] * factor));
    }
    if (blockIdx.z == 0 && tile_column() == 0) {
      a.log_sum_exp[static_cast<long long>(plane) * a.queries + t] =
          softmax.maximum[i] * ln_2 + logf(sum);
    }
  }
}

// --- Few queries ---

// A block has a part of the memory and up to `rows` queries that share its key head; it reads keys
// and values once, which limits it.
constexpr int part_threads = 256;
constexpr int key_lanes = 8;  // that share a key
constexpr int chunk_channels = 4 * 4 * key_lanes;
constexpr int lane_keys = 2;     // at a time, so that enough reads are under way
constexpr int lane_vectors = 4;  // of a chunk

HEED_DEVICE int whole_fours(int count) { return (count + 3) / 4 * 4; }

template <int rows>
struct FewQueries {
  int first;  // of the queries of the group's heads
  int count;

  HEED_DEVICE int head_of(const HeedAttention& a, int g, int row) const {
    return g * a.group + (first + row) / a.queries;
  }
  HEED_DEVICE int query_of(const HeedAttention& a, int row) const {
    return (first + row) % a.queries;
  }
};

template <int type, int rows>
HEED_DEVICE void score_keys(const HeedAttention& a, const Sight& sight, const FewQueries<rows>& few,
                            int b, int g, int begin, int count, const float* query_room,
                            int query_pitch, float* weights, int weight_pitch) {
  const int lane = static_cast<int>(threadIdx.x) % key_lanes;
  const auto keys = memory_rows<type>(a, a.key, a.key_scales, b, g, begin, begin + count);
  constexpr int together = part_threads / key_lanes;
  for (int first = 0; first < count; first += lane_keys * together) {
    const int key = first + static_cast<int>(threadIdx.x) / key_lanes;
    float products[lane_keys][rows];
    HEED_UNROLL
    for (int k = 0; k < lane_keys; ++k) {
      HEED_UNROLL
      for (int r = 0; r < rows; ++r) products[k][r] = 0.0F;
    }
    for (int channel = 4 * lane; channel < query_pitch; channel += chunk_channels) {
      float4 numbers[lane_keys][lane_vectors];
      HEED_UNROLL
      for (int k = 0; k < lane_keys; ++k) {
        HEED_UNROLL
        for (int i = 0; i < lane_vectors; ++i) {
          numbers[k][i] = keys.four(key + k * together, channel + 4 * key_lanes * i);
        }
      }
      HEED_UNROLL
      for (int i = 0; i < lane_vectors; ++i) {
        const int at = channel + 4 * key_lanes * i;
        if (at >= query_pitch) break;
        HEED_UNROLL
        for (int r = 0; r < rows; ++r) {
          const float4 x = *reinterpret_cast<const float4*>(query_room + r * query_pitch + at);
          HEED_UNROLL
          for (int k = 0; k < lane_keys; ++k) {
            products[k][r] += x.x * numbers[k][i].x;
            products[k][r] += x.y * numbers[k][i].y;
            products[k][r] += x.z * numbers[k][i].z;
            products[k][r] += x.w * numbers[k][i].w;
          }
        }
      }
    }
    HEED_UNROLL
    for (int r = 0; r < rows; ++r) {
      HEED_UNROLL
      for (int k = 0; k < lane_keys; ++k) {
        HEED_UNROLL
        for (int step = key_lanes / 2; step > 0; step /= 2) {
          products[k][r] += __shfl_xor_sync(whole_warp, products[k][r], step);
        }
      }
      if (lane != r || r >= few.count) continue;
      const int query = few.query_of(a, r);
      const Scores score(a, few.head_of(a, g, r), log2_e);
      HEED_UNROLL
      for (int k = 0; k < lane_keys; ++k) {
        const int place = key + k * together;
        if (place >= count) break;
        weights[r * weight_pitch + place] = sight.of(query, begin + place)
                                                ? score.of(products[k][r], query, begin + place)
                                                : minus_infinity();
      }
    }
  }
}

template <int rows>
HEED_DEVICE void weigh_keys(const HeedAttention& a, const FewQueries<rows>& few, int b, int g,
                            int begin, int count, float* weights, int weight_pitch, float* maximum,
                            float* sum) {
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  static_assert(rows <= part_threads / warp_lanes, "a warp for each row");
  if (warp >= few.count) return;
  float* const row = weights + warp * weight_pitch;
  float largest = minus_infinity();
  for (int key = lane; key < count; key += warp_lanes) largest = fmaxf(largest, row[key]);
  largest = warp_max(largest);
  const float reference = largest == minus_infinity() ? 0.0F : largest;
  const Dropping dropping(a);
  const unsigned dropout_key =
      dropping.drops() ? dropout_key_of(a, b, few.head_of(a, g, warp), few.query_of(a, warp)) : 0;
  float total = 0.0F;
  for (int key = lane; key < weight_pitch; key += warp_lanes) {
    float weight = key < count ? exp2f(row[key] - reference) : 0.0F;
    total += weight;
    if (dropping.drops() && !dropping.keeps(dropout_key, begin + key)) weight = 0.0F;
    row[key] = weight;
  }
  total = warp_sum(total);
  if (lane != 0) return;
  maximum[warp] = largest;
  sum[warp] = total;
}

template <int type, int rows>
__global__ void __launch_bounds__(part_threads)
    parts_forward(const __grid_constant__ HeedAttentionList list) {
  const HeedAttention& a = sequence_of(list, blockIdx.y);
  const int group_rows = a.group * a.queries, shares = (group_rows + rows - 1) / rows;
  const int key_heads = a.heads / a.group;
  int item = static_cast<int>(blockIdx.x);
  if (item >= a.batch * key_heads * a.parts * shares) return;
  FewQueries<rows> few;
  few.first = item % shares * rows;
  few.count = min(rows, group_rows - few.first);
  item /= shares;
  const int part = item % a.parts, g = item / a.parts % key_heads, b = item / a.parts / key_heads;
  const Sight sight(a, repetition_of(a.repetition));
  const int seen_end = sight.end(a.queries - 1);
  const int begin = min(sight.begin(0) + part * a.part, seen_end);
  const int end = min(begin + a.part, seen_end);
  const int count = end - begin;

  const int query_pitch = whole_fours(a.head_size), weight_pitch = whole_fours(a.part);
  float* const query_room = static_cast<float*>(dynamic_shared_memory());
  float* const weights = query_room + rows * query_pitch;
  float* const sums = weights + rows * weight_pitch;  // of other threads
  float* const maximum = sums + rows * 4 * part_threads;
  float* const sum = maximum + rows;
  for (int i = static_cast<int>(threadIdx.x); i < rows * query_pitch; i += part_threads) {
    const int r = i / query_pitch, at = i % query_pitch;
    float number = 0.0F;
    if (r < few.count && at < a.head_size) {
      number = row_of<float>(a.query, b, few.query_of(a, r), few.head_of(a, g, r))[at];
    }
    query_room[i] = number;
  }
  for (int i = few.count * weight_pitch + static_cast<int>(threadIdx.x); i < rows * weight_pitch;
       i += part_threads) {
    weights[i] = 0.0F;
  }
  __syncthreads();
  score_keys<type, rows>(a, sight, few, b, g, begin, count, query_room, query_pitch, weights,
                         weight_pitch);
  __syncthreads();
  weigh_keys(a, few, b, g, begin, count, weights, weight_pitch, maximum, sum);

  // Each thread sums four channels over every `sets`-th four keys.
  const auto values = memory_rows<type>(a, a.value, a.value_scales, b, g, begin, end);
  const int vectors = query_pitch / 4;
  for (int first = 0; first < vectors; first += part_threads) {
    const int columns = min(vectors - first, part_threads), sets = part_threads / columns;
    const int column = static_cast<int>(threadIdx.x) % columns;
    const int set = static_cast<int>(threadIdx.x) / columns;
    float4 mixed[rows];
    HEED_UNROLL
    for (int r = 0; r < rows; ++r) mixed[r] = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
    __syncthreads();
#ifdef __CUDACC__
#pragma unroll 2
#endif
    for (int key = 4 * set; set < sets && key < count; key += 4 * sets) {
      float4 numbers[4];
      HEED_UNROLL
      for (int i = 0; i < 4; ++i) numbers[i] = values.four(key + i, 4 * (first + column));
      HEED_UNROLL
      for (int r = 0; r < rows; ++r) {
        const float4 weight = *reinterpret_cast<const float4*>(weights + r * weight_pitch + key);
        const float factors[4] = {weight.x, weight.y, weight.z, weight.w};
        HEED_UNROLL
        for (int i = 0; i < 4; ++i) {
          mixed[r].x += factors[i] * numbers[i].x;
          mixed[r].y += factors[i] * numbers[i].y;
          mixed[r].z += factors[i] * numbers[i].z;
          mixed[r].w += factors[i] * numbers[i].w;
        }
      }
    }
    HEED_UNROLL
    for (int r = 0; r < rows; ++r) {
      *reinterpret_cast<float4*>(sums + (r * part_threads + static_cast<int>(threadIdx.x)) * 4) =
          mixed[r];
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < few.count * 4 * columns; i += part_threads) {
      const int r = i / (4 * columns), at = i % (4 * columns), channel = 4 * first + at;
      if (channel >= a.head_size) continue;
      float total = 0.0F;
      for (int k = 0; k < sets; ++k) total += sums[(r * part_threads + k * columns) * 4 + at];
      const int h = few.head_of(a, g, r), t = few.query_of(a, r);
      if (a.partial == nullptr) {
        const float factor = sum[r] == 0.0F ? 0.0F : 1.0F / (sum[r] * a.dropout.kept);
        row_of<float>(a.out, b, t, h)[channel] = factor * total;
      } else {
        const long long row = (static_cast<long long>(b) * a.heads + h) * a.queries + t;
        a.partial[(row * a.parts + part) * (a.head_size + 2) + channel] = total;
      }
    }
  }
  const int r = static_cast<int>(threadIdx.x);
  if (r >= few.count) return;
  const long long row =
      (static_cast<long long>(b) * a.heads + few.head_of(a, g, r)) * a.queries + few.query_of(a, r);
  if (a.partial == nullptr) {
    a.log_sum_exp[row] = maximum[r] * ln_2 + logf(sum[r]);
  } else {
    float* const partial = a.partial + (row * a.parts + part) * (a.head_size + 2) + a.head_size;
    partial[0] = maximum[r];
    partial[1] = sum[r];
  }
}

// A block has a row.
constexpr int merging_threads = 128;

__global__ void __launch_bounds__(merging_threads)
    merge_parts(const __grid_constant__ HeedAttentionList list) {
  const HeedAttention& a = sequence_of(list, blockIdx.y);
  const int row = static_cast<int>(blockIdx.x);
  if (row >= a.batch * a.heads * a.queries || a.partial == nullptr) return;
  const int width = a.head_size + 2;
  const float* const partial = a.partial + static_cast<long long>(row) * a.parts * width;
  float* const room = static_cast<float*>(dynamic_shared_memory());
  float* const factors = room + merging_threads / warp_lanes;
  float largest = minus_infinity();
  for (int i = static_cast<int>(threadIdx.x); i < a.parts; i += merging_threads) {
    largest = fmaxf(largest, partial[i * width + a.head_size]);
  }
  largest = block_max(largest, room);
  const float reference = largest == minus_infinity() ? 0.0F : largest;
  float sum = 0.0F;
  for (int i = static_cast<int>(threadIdx.x); i < a.parts; i += merging_threads) {
    const float factor = exp2f(partial[i * width + a.head_size] - reference);
    factors[i] = factor;
    sum += factor * partial[i * width + a.head_size + 1];
  }
  sum = block_sum(sum, room);  // and the factors are there
  const int t = row % a.queries, h = row / a.queries % a.heads, b = row / a.queries / a.heads;
  const float factor = sum == 0.0F ? 0.0F : 1.0F / (sum * a.dropout.kept);
  float* const out = row_of<float>(a.out, b, t, h);
  for (int at = static_cast<int>(threadIdx.x); at < a.head_size; at += merging_threads) {
    float total = 0.0F;
    for (int i = 0; i < a.parts; ++i) total += factors[i] * partial[i * width + at];
    out[at] = factor * total;
  }
  if (threadIdx.x == 0) a.log_sum_exp[row] = largest * ln_2 + logf(sum);
}

// --- Parts that came one after another: a warp merges a row, and memory limits it ---

constexpr int row_threads = 256;

__global__ void __launch_bounds__(row_threads)
    merge_attention(const __grid_constant__ HeedMergedParts operands) {
  const HeedMergedParts& o = operands;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const long long row = first_item() / warp_lanes;
  // Heads of a position lie side by side.
  const int h = static_cast<int>(row % o.heads);
  const int t = static_cast<int>(row / o.heads % o.queries);
  const int b = static_cast<int>(row / o.heads / o.queries);
  if (b >= o.batch) return;
  const long long at = (static_cast<long long>(b) * o.heads + h) * o.queries + t;
  const float before = o.log_sum_exp[at], added = o.part_log_sum_exp[at];
  if (added == minus_infinity()) return;
  const float maximum = fmaxf(before, added);
  const float kept = expf(before - maximum), gained = expf(added - maximum);
  const float sum = kept + gained, keep = kept / sum, gain = gained / sum;
  const float* const part = row_of<float>(o.part, b, t, h);
  float* const out = row_of<float>(o.out, b, t, h);
  for (int i = lane; i < o.head_size; i += warp_lanes) out[i] = keep * out[i] + gain * part[i];
  __syncwarp();
  if (lane == 0) o.log_sum_exp[at] = maximum + logf(sum);
}

// --- Launches ---

template <int type>
HeedCudaResult launch_tiles(const HeedAttentionList& list) {
  const int chunks = (list.head_size + tile_rows - 1) / tile_rows;
  const auto columns = static_cast<unsigned>((chunks + 1) / 2);
  const dim3 grid(static_cast<unsigned>(list.blocks), static_cast<unsigned>(list.count), columns);
  const size_t bytes =
      sizeof(float) * static_cast<size_t>(tile_floats * (chunks == 1 ? 3 : 2 + resident_chunks));
  return launch(chunks == 1 ? tiles_forward<type, 1> : tiles_forward<type, 2>, grid,
                dim3(tile_threads), bytes, list);
}

template <int type, int rows>
HeedCudaResult launch_parts(const HeedAttentionList& list) {
  const int shares = (list.rows + rows - 1) / rows;
  const dim3 grid(static_cast<unsigned>(list.blocks * shares), static_cast<unsigned>(list.count));
  const size_t floats =
      static_cast<size_t>(rows) *
      static_cast<size_t>(list.head_size + 3 + list.part + 3 + 4 * part_threads + 2);
  return launch(parts_forward<type, rows>, grid, dim3(part_threads), floats * sizeof(float), list);
}

template <int type>
HeedCudaResult launch_parts(const HeedAttentionList& list) {
  if (list.rows == 1) return launch_parts<type, 1>(list);
  if (list.rows == 2) return launch_parts<type, 2>(list);
  if (list.rows <= 4) return launch_parts<type, 4>(list);
  return launch_parts<type, 8>(list);
}

}  // namespace
}  // namespace heed_cuda

extern "C" {

HeedCudaResult heed_cuda_attention_tiles_forward(const HeedAttentionList* list) {
  switch (list->type) {
    case HEED_ROWS_F32: return heed_cuda::launch_tiles<HEED_ROWS_F32>(*list);
    case HEED_ROWS_BF16: return heed_cuda::launch_tiles<HEED_ROWS_BF16>(*list);
    default: return heed_cuda::launch_tiles<HEED_ROWS_INT8>(*list);
  }
}

HeedCudaResult heed_cuda_attention_parts_forward(const HeedAttentionList* list) {
  switch (list->type) {
    case HEED_ROWS_F32: return heed_cuda::launch_parts<HEED_ROWS_F32>(*list);
    case HEED_ROWS_BF16: return heed_cuda::launch_parts<HEED_ROWS_BF16>(*list);
    default: return heed_cuda::launch_parts<HEED_ROWS_INT8>(*list);
  }
}

// Rows in `blocks`, of which each has at most `parts` parts.
HeedCudaResult heed_cuda_attention_merge_parts(const HeedAttentionList* list) {
  const dim3 grid(static_cast<unsigned>(list->blocks), static_cast<unsigned>(list->count));
  const size_t floats =
      static_cast<size_t>(heed_cuda::merging_threads / heed_cuda::warp_lanes + list->parts);
  return heed_cuda::launch(heed_cuda::merge_parts, grid, dim3(heed_cuda::merging_threads),
                           floats * sizeof(float), *list);
}

HeedCudaResult heed_cuda_merge_attention(const HeedMergedParts* operands) {
  const long long rows =
      static_cast<long long>(operands->batch) * operands->queries * operands->heads;
  return heed_cuda::launch(
      heed_cuda::merge_attention,
      heed_cuda::blocks_for(rows * heed_cuda::warp_lanes, heed_cuda::row_threads),
      dim3(heed_cuda::row_threads), 0, *operands);
}

}  // extern "C"
