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

// Running state of a block's softmax, one lane per query; scores are in units of log 2.
struct RunningSoftmax {
  HWY_ALIGN float maximum[query_block];
  HWY_ALIGN float sum[query_block];
  HWY_ALIGN float rescale[query_block];  // factor for the sums so far
};

// Replaces the scores of column vector j by exp2(scores - maximum) and updates the running state.
template <bool dropping, bool windowed>
HWY_INLINE void SoftmaxColumn(const TilePlace& place, std::int64_t j, const TileDropout& dropout,
                              RowsAhead<2>& ahead, float* tile, RunningSoftmax& state) {
  const Floats d;
  const Float lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  const ColumnLimits limits = LimitsOf<windowed>(place, j);
  float* column = tile + j;
  const auto at = [&](std::int64_t i)
                      HEED_INLINE_LAMBDA { return hn::Load(d, column + i * query_block); };

  const Float before = hn::Load(d, state.maximum + j);
  Float largest[4] = {before, lowest, lowest, lowest};
  const auto largest_of_some = [&](std::int64_t i, auto chain) HEED_INLINE_LAMBDA {
    const Float seen = hn::IfThenElse(VisibleLanes<windowed>(place, i, j), at(i), lowest);
    largest[chain] = hn::Max(largest[chain], seen);
  };
  ByFours(limits.begin, limits.whole_begin, largest_of_some);
  ByFours(limits.whole_begin, limits.whole, [&](std::int64_t i, auto chain) HEED_INLINE_LAMBDA {
    largest[chain] = hn::Max(largest[chain], at(i));
  });
  ByFours(limits.whole, limits.part, largest_of_some);
  const Float maximum = hn::Max(hn::Max(largest[0], largest[1]), hn::Max(largest[2], largest[3]));
  // With a window, a query may have seen nothing yet.
  Float reference = maximum;
  if constexpr (windowed) {
    reference = hn::IfThenElse(hn::Eq(maximum, lowest), hn::Zero(d), maximum);
  }

  Float sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  const auto put = [&](std::int64_t i, auto chain, Float weight) HEED_INLINE_LAMBDA {
    sums[chain] = hn::Add(sums[chain], weight);
    if constexpr (dropping) weight = hn::IfThenElseZero(dropout.Kept(i, j), weight);
    hn::Store(weight, d, column + i * query_block);
  };
  const auto weigh_some = [&](std::int64_t i, auto chain) HEED_INLINE_LAMBDA {
    const Float weight = Exp2Clamped(d, hn::Sub(at(i), reference));
    put(i, chain, hn::IfThenElseZero(VisibleLanes<windowed>(place, i, j), weight));
  };
  for (std::int64_t i = 0; i < limits.begin; ++i) {
    hn::Store(hn::Zero(d), d, column + i * query_block);
  }
  ByFours(limits.begin, limits.whole_begin, weigh_some);
  ByFours(limits.whole_begin, limits.whole, [&](std::int64_t i, auto chain) HEED_INLINE_LAMBDA {
    ahead.Step(chain);
    put(i, chain, Exp2Clamped(d, hn::Sub(at(i), reference)));
  });
  ByFours(limits.whole, limits.part, weigh_some);
  for (std::int64_t i = limits.part; i < place.keys; ++i) {
    hn::Store(hn::Zero(d), d, column + i * query_block);
  }

  const Float rescale = Exp2Clamped(d, hn::Sub(before, reference));
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
  constexpr float unit = std::numbers::log2e_v<float>;
  PackTransposed(query, queries, head.head_size, query_factor(head, unit), transposed);
  RunningSoftmax state;
  std::fill_n(state.maximum, query_block, -std::numeric_limits<float>::infinity());
  std::fill_n(state.sum, query_block, 0.0F);
  TileDropout dropout;
  const bool dropping = head.dropout.rate > 0.0F;
  if (dropping) dropout.Prepare(head, begin, queries);

  const std::int64_t first = first_tile(head, begin), last = visible_end(head, end);
  if (first >= last) std::fill_n(mixed, queries * columns, 0.0F);
  for (std::int64_t s = first; s < last; s += key_block) {
    const TilePlace place = PlaceTile(head, begin, queries, s);
    const auto operand = [&](const Rows<const float>& memory) {
      const Rows<const float> rows{memory[s], memory.stride};
      return head.padded ? rows : Operand(head, rows, place.keys, memory_copy);
    };
    MultiplyScores(place, operand(head.key), transposed, head.head_size, tile);
    CapScores(head, place, unit, tile);
    BiasScores(head, place, begin, s, unit, tile);
    dropout.first_column = static_cast<std::uint32_t>(s);
    const std::int64_t next = s + key_block < last ? s + key_block : first;
    RowsAhead<2> ahead({head.key[next], head.value[next]},
                       head.padded ? RowPrefetch::on : RowPrefetch::off);
    const auto weigh = [&](auto drops, auto windows) HEED_INLINE_LAMBDA {
      for (std::int64_t j = 0; j < queries; j += lanes) {
        SoftmaxColumn<drops(), windows()>(place, j, dropout, ahead, tile, state);
      }
    };
    if (place.windowed()) {
      dropping ? weigh(std::true_type(), std::true_type())
               : weigh(std::false_type(), std::true_type());
    } else {
      dropping ? weigh(std::true_type(), std::false_type())
               : weigh(std::false_type(), std::false_type());
    }
    if (head.precision == Precision::bf16) RoundTile(place, tile);
    const Rows<const float> value = operand(head.value);
    if (s == first) {
      MixOverKeys<Start::zero>(place, tile, value, columns, {mixed, columns}, nullptr);
    } else {
      MixOverKeys<Start::rescaled>(place, tile, value, columns, {mixed, columns}, state.rescale);
    }
  }

  const float kept = 1.0F - head.dropout.rate;
  for (std::int64_t i = 0; i < queries; ++i) {
    const Floats d;
    const float sum = state.sum[i];  // 0: the query sees nothing of the memory
    const Float factor = hn::Set(d, sum > 0.0F ? 1.0F / (sum * kept) : 0.0F);
    float* const to = out[begin + i];
    const float* const from = mixed + i * columns;
    ForEachVector(static_cast<std::size_t>(head.head_size),
                  [&](std::size_t, auto load, auto store)
                      HEED_INLINE_LAMBDA { store(hn::Mul(load(from), factor), to); });
    log_sum_exp[begin + i] = state.maximum[i] * std::numbers::ln2_v<float> + std::log(sum);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(PackedMemorySize);
HWY_EXPORT(PackMemory);
HWY_EXPORT(AttendBlock);

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

}  // namespace heed::kernels
#endif  // HWY_ONCE
