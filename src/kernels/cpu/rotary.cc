// Rotary position embeddings, in place.
#include "base/threads.h"
#include "kernels/backends.h"
#include "kernels/cpu/strided_heads.h"
#include "kernels/operand_checks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rotary.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

// Two channels that rotate together.
struct Pair {
  Float first, second;
};
HWY_INLINE Pair Rotate(const Pair& pair, Float cosine, Float sine) {
  return {hn::NegMulAdd(pair.second, sine, hn::Mul(pair.first, cosine)),
          hn::MulAdd(pair.first, sine, hn::Mul(pair.second, cosine))};
}

// Pairs i and i + pairs of one head; `direction` is 1, or −1 for the opposite angles.
HWY_INLINE void RotateHalves(float* x, std::size_t pairs, const float* cosine, const float* sine,
                             float direction) {
  const Float sign = hn::Set(Floats(), direction);
  float* const second = x + pairs;
  ForEachVector(pairs, [&](std::size_t, auto load, auto store) HEED_INLINE_LAMBDA {
    const Pair turned = Rotate({load(x), load(second)}, load(cosine), hn::Mul(sign, load(sine)));
    store(turned.first, x);
    store(turned.second, second);
  });
}

// Pairs 2i and 2i + 1.
HWY_INLINE void RotateNeighbours(float* x, std::size_t pairs, const float* cosine,
                                 const float* sine, float direction) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  const Float sign = hn::Set(d, direction);
  std::size_t i = 0;
  for (; i + lanes <= pairs; i += lanes) {
    Pair pair;
    hn::LoadInterleaved2(d, x + 2 * i, pair.first, pair.second);
    const Pair turned =
        Rotate(pair, hn::LoadU(d, cosine + i), hn::Mul(sign, hn::LoadU(d, sine + i)));
    hn::StoreInterleaved2(turned.first, turned.second, d, x + 2 * i);
  }
  for (; i < pairs; ++i) {
    const float first = x[2 * i], second = x[2 * i + 1], along = direction * sine[i];
    x[2 * i] = first * cosine[i] - second * along;
    x[2 * i + 1] = second * cosine[i] + first * along;
  }
}

// All heads of rows [begin, end).
void RotateRows(const StridedHeads<float>& x, std::int64_t heads, const RotaryTable<float>& table,
                float direction, std::int64_t begin, std::int64_t end) {
  const std::int64_t pairs = table.cosine.extent(1);
  const auto count = static_cast<std::size_t>(pairs);
  for (std::int64_t n = begin; n < end; ++n) {
    const float* const cosine = table.cosine.data() + n * pairs;
    const float* const sine = table.sine.data() + n * pairs;
    for (std::int64_t h = 0; h < heads; ++h) {
      if (table.pairing == RotaryPairing::halves) {
        RotateHalves(x.at(n, h), count, cosine, sine, direction);
      } else {
        RotateNeighbours(x.at(n, h), count, cosine, sine, direction);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(RotateRows);

namespace {

void rotate(const View<float>& x, const RotaryTable<float>& table, float direction) {
  checks::rotary(x, table);
  const std::int64_t heads = x.extent(1), pairs = table.cosine.extent(1);
  if (x.size() == 0 || pairs == 0) return;
  const StridedHeads<float> to(x);
  parallel_ranges(x.extent(0), 8192 / (heads * pairs) + 1,
                  [&](std::int64_t begin, std::int64_t end) {
                    HWY_DYNAMIC_DISPATCH(RotateRows)(to, heads, table, direction, begin, end);
                  });
}

}  // namespace

void cpu::rotary_forward(View<float> x, const RotaryTable<float>& table) { rotate(x, table, 1.0F); }

void cpu::rotary_backward(View<float> d_x, const RotaryTable<float>& table) {
  rotate(d_x, table, -1.0F);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
