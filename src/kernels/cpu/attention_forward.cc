// Attention forward over one block of queries.
#include "kernels/cpu/attention_blocks.h"
#include "kernels/cpu/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_forward.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/cpu/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

// The running state of a block's softmax, a lane a query, scores counted in powers of two.
struct RunningSoftmax {
  HWY_ALIGN float maximum[query_block];
  HWY_ALIGN float sum[query_block];
  HWY_ALIGN float rescale[query_block];  // what sums so far must be multiplied by
};

// Turns the scores of column vector j into exp2(scores - maximum), updating the running state.
template <bool dropping>
HWY_INLINE void SoftmaxColumn(const TilePlace& place, std::int64_t j, const TileDropout& dropout,
                              float* tile, RunningSoftmax& state) {
  const Floats d;
  const Float lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  const auto [whole, part] = LimitsOf(place, j);
  float* column = tile + j;
  const auto at = [&](std::int64_t i)
                      HEED_INLINE_LAMBDA { return hn::Load(d, column + i * query_block); };

  const Float before = hn::Load(d, state.maximum + j);
  Float largest[4] = {before, lowest, lowest, lowest};
  ByFours(0, whole, [&](std::int64_t i, auto chain) HEED_INLINE_LAMBDA {
    largest[chain] = hn::Max(largest[chain], at(i));
  });
  ByFours(whole, part, [&](std::int64_t i, auto chain) HEED_INLINE_LAMBDA {
    const Float seen = hn::IfThenElse(VisibleLanes(place, i, j), at(i), lowest);
    largest[chain] = hn::Max(largest[chain], seen);
  });
  const Float maximum = hn::Max(hn::Max(largest[0], largest[1]), hn::Max(largest[2], largest[3]));

  Float sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  const auto put = [&](std::int64_t i, auto chain, Float weight) HEED_INLINE_LAMBDA {
    sums[chain] = hn::Add(sums[chain], weight);
    if constexpr (dropping) weight = hn::IfThenElseZero(dropout.Kept(i, j), weight);
    hn::Store(weight, d, column + i * query_block);
  };
  ByFours(0, whole, [&](std::int64_t i, auto chain) HEED_INLINE_LAMBDA {
    put(i, chain, Exp2Clamped(d, hn::Sub(at(i), maximum)));
  });
  ByFours(whole, part, [&](std::int64_t i, auto chain) HEED_INLINE_LAMBDA {
    const Float weight = Exp2Clamped(d, hn::Sub(at(i), maximum));
    put(i, chain, hn::IfThenElseZero(VisibleLanes(place, i, j), weight));
  });
  for (std::int64_t i = part; i < place.keys; ++i) {
    hn::Store(hn::Zero(d), d, column + i * query_block);
  }

  const Float rescale = Exp2Clamped(d, hn::Sub(before, maximum));
  const Float sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  hn::Store(maximum, d, state.maximum + j);
  hn::Store(rescale, d, state.rescale + j);
  hn::Store(hn::MulAdd(hn::Load(d, state.sum + j), rescale, sum), d, state.sum + j);
}

std::int64_t PackedMemorySize(const Head& head) {
  return 2 * head.memory * WholeVectors(head.head_size);
}

Head PackMemory(const Head& head, float* buffer) {
  const std::int64_t columns = WholeVectors(head.head_size);
  float* const values = buffer + head.memory * columns;
  CopyOperand(head, head.key, head.memory, buffer);
  CopyOperand(head, head.value, head.memory, values);
  Head packed = head;
  packed.key = {buffer, columns};
  packed.value = {values, columns};
  packed.padded = true;
  return packed;
}

void AttendBlock(const Head& head, std::int64_t begin, std::int64_t end, Rows<float> out,
                 float* log_sum_exp) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  const std::int64_t queries = end - begin;
  const std::int64_t columns = WholeVectors(head.head_size);
  float* const tile = scratch(Scratch::item, query_block * (key_block + 4 * columns));
  float* const transposed = tile + query_block * key_block;
  float* const mixed = transposed + query_block * columns;
  float* const query_copy = mixed + query_block * columns;
  float* const memory_copy = query_copy + query_block * columns;  // of keys, then of values

  // Scores in powers of two: exp(scores) = 2^(scores·log2 e).
  const Rows<const float> query =
      Operand(head, {head.query[begin], head.query.stride}, queries, query_copy);
  PackTransposed(query, queries, head.head_size, head.scale * std::numbers::log2e_v<float>,
                 transposed);
  RunningSoftmax state;
  std::fill_n(state.maximum, query_block, -std::numeric_limits<float>::infinity());
  std::fill_n(state.sum, query_block, 0.0F);
  TileDropout dropout;
  const bool dropping = head.dropout.rate > 0.0F;
  if (dropping) dropout.Prepare(head, begin, queries);

  for (std::int64_t s = 0, last = visible_end(head, end); s < last; s += key_block) {
    const TilePlace place = PlaceTile(head, begin, queries, s);
    const auto operand = [&](const Rows<const float>& memory) {
      const Rows<const float> rows{memory[s], memory.stride};
      return head.padded ? rows : Operand(head, rows, place.keys, memory_copy);
    };
    MultiplyScores(place, operand(head.key), transposed, head.head_size, tile);
    dropout.first_column = static_cast<std::uint32_t>(s);
    for (std::int64_t j = 0; j < queries; j += lanes) {
      if (dropping) {
        SoftmaxColumn<true>(place, j, dropout, tile, state);
      } else {
        SoftmaxColumn<false>(place, j, dropout, tile, state);
      }
    }
    if (head.precision == Precision::bf16) RoundToBf16(tile, place.keys * query_block);
    const Rows<const float> value = operand(head.value);
    if (s == 0) {
      MixOverKeys<Start::zero>(place, tile, value, columns, {mixed, columns}, nullptr);
    } else {
      MixOverKeys<Start::rescaled>(place, tile, value, columns, {mixed, columns}, state.rescale);
    }
  }

  const float kept = 1.0F - head.dropout.rate;
  for (std::int64_t i = 0; i < queries; ++i) {
    const Floats d;
    const Float factor = hn::Set(d, 1.0F / (state.sum[i] * kept));
    float* const to = out[begin + i];
    const float* const from = mixed + i * columns;
    ForEachVector(static_cast<std::size_t>(head.head_size),
                  [&](std::size_t, auto load, auto store)
                      HEED_INLINE_LAMBDA { store(hn::Mul(load(from), factor), to); });
    log_sum_exp[begin + i] = state.maximum[i] * std::numbers::ln2_v<float> + std::log(state.sum[i]);
  }
}

// Four dot products of length `size` with one vector.
HWY_INLINE void DotFour(const float* x, Rows<const float> rows, std::int64_t size, float* out) {
  const Floats d;
  Float sum[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  ForEachVector(static_cast<std::size_t>(size),
                [&](std::size_t, auto load, auto) HEED_INLINE_LAMBDA {
                  const Float shared = load(x);
                  Unroll<4>([&](auto r) HEED_INLINE_LAMBDA {
                    sum[r] = hn::MulAdd(shared, load(rows[static_cast<std::int64_t>(r)]), sum[r]);
                  });
                });
  Unroll<4>([&](auto r) HEED_INLINE_LAMBDA { out[r] = hn::GetLane(hn::SumOfLanes(d, sum[r])); });
}

PartialSoftmax AttendRow(const Head& head, std::int64_t query, std::int64_t key_begin,
                         std::int64_t key_end, float* out) {
  // A chunk of keys, then of values, is read at a time: scores in between stay in registers' reach.
  constexpr std::int64_t chunk = 128;
  const Floats d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t size = head.head_size;
  float* const scaled = scratch(Scratch::item, static_cast<std::size_t>(size));
  for (std::int64_t k = 0; k < size; ++k) {
    scaled[k] = head.query[query][k] * (head.scale * std::numbers::log2e_v<float>);
  }
  const std::uint32_t row_key =
      dropout_row_key(head.dropout.key, static_cast<std::uint64_t>(head.first_row + query));
  const std::uint32_t threshold = dropout_threshold(head.dropout.rate);

  HWY_ALIGN float weights[chunk];
  PartialSoftmax state{-std::numeric_limits<float>::infinity(), 0.0F};
  std::fill_n(out, size, 0.0F);
  for (std::int64_t s = key_begin; s < key_end; s += chunk) {
    const std::int64_t count = std::min(chunk, key_end - s);
    const Rows<const float> keys{head.key[s], head.key.stride};
    std::fill_n(weights, chunk, -std::numeric_limits<float>::infinity());
    std::int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
      DotFour(scaled, {keys[i], keys.stride}, size, weights + i);
    }
    for (; i < count; ++i) {  // the same row four times: only one of its products is kept
      float products[4];
      DotFour(scaled, {keys[i], 0}, size, products);
      weights[i] = products[0];
    }

    Float largest = hn::Set(d, state.maximum);
    for (i = 0; i < chunk; i += lanes) largest = hn::Max(largest, hn::Load(d, weights + i));
    const float maximum = hn::GetLane(hn::MaxOfLanes(d, largest));
    const float rescale = std::exp2(state.maximum - maximum);
    Float sum = hn::Zero(d);
    for (i = 0; i < count; i += lanes) {
      const Float score = hn::Load(d, weights + i);
      const auto inside =
          hn::Lt(hn::Iota(d, static_cast<float>(i)), hn::Set(d, static_cast<float>(count)));
      const Float weight =
          hn::IfThenElseZero(inside, Exp2Clamped(d, hn::Sub(score, hn::Set(d, maximum))));
      sum = hn::Add(sum, weight);
      hn::Store(weight, d, weights + i);
    }
    state.sum = state.sum * rescale + hn::GetLane(hn::SumOfLanes(d, sum));
    state.maximum = maximum;
    if (head.dropout.rate > 0.0F) {
      for (i = 0; i < count; ++i) {
        const auto column = static_cast<std::uint32_t>(s + i);
        if (dropout_bits(row_key, column) < threshold) weights[i] = 0.0F;
      }
    }

    const Rows<const float> values{head.value[s], head.value.stride};
    ForEachVector(static_cast<std::size_t>(size),
                  [&](std::size_t, auto load, auto store) HEED_INLINE_LAMBDA {
                    Float mixed[4] = {hn::Mul(load(out), hn::Set(d, rescale)), hn::Zero(d),
                                      hn::Zero(d), hn::Zero(d)};
                    std::int64_t row = 0;
                    for (; row + 4 <= count; row += 4) {
                      Unroll<4>([&](auto r) HEED_INLINE_LAMBDA {
                        const std::int64_t at = row + static_cast<std::int64_t>(r);
                        mixed[r] = hn::MulAdd(hn::Set(d, weights[at]), load(values[at]), mixed[r]);
                      });
                    }
                    for (; row < count; ++row) {
                      mixed[0] = hn::MulAdd(hn::Set(d, weights[row]), load(values[row]), mixed[0]);
                    }
                    store(hn::Add(hn::Add(mixed[0], mixed[1]), hn::Add(mixed[2], mixed[3])), out);
                  });
  }
  return state;
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(PackedMemorySize);
HWY_EXPORT(PackMemory);
HWY_EXPORT(AttendBlock);
HWY_EXPORT(AttendRow);

std::int64_t packed_memory_size(const Head& head) {
  return HWY_DYNAMIC_DISPATCH(PackedMemorySize)(head);
}

Head pack_memory(const Head& head, float* buffer) {
  return HWY_DYNAMIC_DISPATCH(PackMemory)(head, buffer);
}

void attend_block(const Head& head, std::int64_t begin, std::int64_t end, Rows<float> out,
                  float* log_sum_exp) {
  HWY_DYNAMIC_DISPATCH(AttendBlock)(head, begin, end, out, log_sum_exp);
}

PartialSoftmax attend_row(const Head& head, std::int64_t query, std::int64_t key_begin,
                          std::int64_t key_end, float* out) {
  return HWY_DYNAMIC_DISPATCH(AttendRow)(head, query, key_begin, key_end, out);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
