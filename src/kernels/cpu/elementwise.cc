// Operations on elements: activations, dropout, addition, embedding's table look-ups.
#include "base/threads.h"
#include "kernels/backends.h"
#include "kernels/dropout_hash.h"
#include "kernels/operand_checks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/cpu/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

template <Activation activation>
HWY_INLINE void ActivateAll(const float* x, std::size_t count, float* out) {
  ForEachVector(count, [&](std::size_t, auto load, auto store) HEED_INLINE_LAMBDA {
    store(Activate<activation>(Floats(), load(x)), out);
  });
}

template <Activation activation>
HWY_INLINE void DifferentiateAll(const float* x, const float* d_out, std::size_t count,
                                 float* d_x) {
  ForEachVector(count, [&](std::size_t, auto load, auto store) HEED_INLINE_LAMBDA {
    store(hn::Mul(load(d_out), Derivative<activation>(Floats(), load(x))), d_x);
  });
}

void ActivateRange(Activation activation, const float* x, std::size_t count, float* out) {
  WithActivation(activation, [&](auto kind) { ActivateAll<kind()>(x, count, out); });
}

void DifferentiateRange(Activation activation, const float* x, const float* d_out,
                        std::size_t count, float* d_x) {
  WithActivation(activation, [&](auto kind) { DifferentiateAll<kind()>(x, d_out, count, d_x); });
}

void DropRow(const float* x, std::size_t count, std::uint32_t row_key, float rate, float* out) {
  const Floats d;
  const Words dw;
  const auto keys = hn::Set(dw, row_key);
  const auto threshold = hn::Set(dw, dropout_threshold(rate));
  const Float scale = hn::Set(d, 1.0F / (1.0F - rate));
  ForEachVector(count, [&](std::size_t i, auto load, auto store) HEED_INLINE_LAMBDA {
    const auto columns = hn::Iota(dw, static_cast<std::uint32_t>(i));
    const auto kept = Kept(d, keys, hn::Mul(columns, hn::Set(dw, dropout_column_step)), threshold);
    store(hn::IfThenElseZero(kept, hn::Mul(load(x), scale)), out);
  });
}

void AddRange(const float* x, const float* y, std::size_t count, float* out) {
  ForEachVector(count, [&](std::size_t, auto load, auto store)
                           HEED_INLINE_LAMBDA { store(hn::Add(load(x), load(y)), out); });
}

// out = scale·x + y
void ScaleAddRange(float scale, const float* x, const float* y, std::size_t count, float* out) {
  const auto factor = hn::Set(Floats(), scale);
  ForEachVector(count, [&](std::size_t, auto load, auto store) HEED_INLINE_LAMBDA {
    store(hn::MulAdd(factor, load(x), load(y)), out);
  });
}

void ScaleRange(float scale, const float* x, std::size_t count, float* out) {
  const auto factor = hn::Set(Floats(), scale);
  ForEachVector(count, [&](std::size_t, auto load, auto store)
                           HEED_INLINE_LAMBDA { store(hn::Mul(factor, load(x)), out); });
}

void CapRange(const float* x, float cap, std::size_t count, float* out) {
  const Floats d;
  const Float limit = hn::Set(d, cap);
  ForEachVector(count, [&](std::size_t, auto load, auto store) HEED_INLINE_LAMBDA {
    store(hn::Mul(limit, Tanh(d, hn::Div(load(x), limit))), out);
  });
}

// d_x = d_out·(1 − (out/cap)²)
void UncapRange(const float* out, float cap, const float* d_out, std::size_t count, float* d_x) {
  const Floats d;
  const Float limit = hn::Set(d, cap);
  ForEachVector(count, [&](std::size_t, auto load, auto store) HEED_INLINE_LAMBDA {
    const Float share = hn::Div(load(out), limit);
    store(hn::Mul(load(d_out), hn::NegMulAdd(share, share, hn::Set(d, 1.0F))), d_x);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(ActivateRange);
HWY_EXPORT(DifferentiateRange);
HWY_EXPORT(DropRow);
HWY_EXPORT(AddRange);
HWY_EXPORT(ScaleAddRange);
HWY_EXPORT(ScaleRange);
HWY_EXPORT(CapRange);
HWY_EXPORT(UncapRange);

namespace {

// The least number of elements for a second thread: a few microseconds of work.
constexpr std::int64_t cheap_grain = 16384;
constexpr std::int64_t costly_grain = 4096;

// body(begin, count) on ranges of whole cache lines.
template <class Body>
void over_elements(std::int64_t size, std::int64_t grain, Body&& body) {
  parallel_ranges((size + 15) / 16, grain / 16, [&](std::int64_t begin, std::int64_t end) {
    body(begin * 16, static_cast<std::size_t>(std::min(end * 16, size) - begin * 16));
  });
}

}  // namespace

void cpu::activation_forward(View<const float> x, Activation activation, View<float> out) {
  checks::same_shape(x, out, "x", "out");
  over_elements(x.size(), costly_grain, [&](std::int64_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(ActivateRange)
    (activation, x.data() + begin, count, out.data() + begin);
  });
}

void cpu::activation_backward(View<const float> x, Activation activation, View<const float> d_out,
                              View<float> d_x) {
  checks::same_shape(x, d_out, "x", "d_out");
  checks::same_shape(x, d_x, "x", "d_x");
  over_elements(x.size(), costly_grain, [&](std::int64_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(DifferentiateRange)
    (activation, x.data() + begin, d_out.data() + begin, count, d_x.data() + begin);
  });
}

void cpu::soft_cap_forward(View<const float> x, float cap, View<float> out) {
  checks::soft_cap(cap);
  checks::same_shape(x, out, "x", "out");
  over_elements(x.size(), costly_grain, [&](std::int64_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(CapRange)(x.data() + begin, cap, count, out.data() + begin);
  });
}

void cpu::soft_cap_backward(View<const float> out, float cap, View<const float> d_out,
                            View<float> d_x) {
  checks::soft_cap(cap);
  checks::same_shape(out, d_out, "out", "d_out");
  checks::same_shape(out, d_x, "out", "d_x");
  over_elements(out.size(), cheap_grain, [&](std::int64_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(UncapRange)
    (out.data() + begin, cap, d_out.data() + begin, count, d_x.data() + begin);
  });
}

void cpu::dropout(View<const float> x, const Dropout& dropout, View<float> out) {
  checks::rank(x, 2, "x");
  checks::same_shape(x, out, "x", "out");
  checks::dropout(dropout);
  const std::int64_t columns = x.extent(1);
  if (columns == 0) return;
  parallel_ranges(x.extent(0), cheap_grain / columns + 1,
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t row = begin; row < end; ++row) {
                      HWY_DYNAMIC_DISPATCH(DropRow)
                      (x.data() + row * columns, static_cast<std::size_t>(columns),
                       dropout_row_key(dropout, static_cast<std::uint64_t>(row)), dropout.rate,
                       out.data() + row * columns);
                    }
                  });
}

void cpu::add(View<const float> x, View<const float> y, View<float> out) {
  checks::same_shape(x, y, "x", "y");
  checks::same_shape(x, out, "x", "out");
  over_elements(x.size(), cheap_grain, [&](std::int64_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(AddRange)
    (x.data() + begin, y.data() + begin, count, out.data() + begin);
  });
}

void cpu::embedding_forward(const EmbeddingInput<float>& input, View<float> out) {
  checks::embedding(input, out, EmbeddingGradients<float>{}, "out");
  const std::int64_t positions = out.extent(1), channels = out.extent(2);
  if (out.size() == 0) return;
  parallel_ranges(
      out.extent(0) * positions, cheap_grain / channels + 1,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const float* const token = input.token_table.data() + input.tokens.data()[row] * channels;
          float* const to = out.data() + row * channels;
          const auto count = static_cast<std::size_t>(channels);
          if (!input.position_table.present()) {
            HWY_DYNAMIC_DISPATCH(ScaleRange)(input.token_scale, token, count, to);
            continue;
          }
          const std::int64_t position = input.position(row / positions, row % positions);
          const float* const added = input.position_table.data() + position * channels;
          if (input.token_scale == 1.0F) {
            HWY_DYNAMIC_DISPATCH(AddRange)(token, added, count, to);
          } else {
            HWY_DYNAMIC_DISPATCH(ScaleAddRange)(input.token_scale, token, added, count, to);
          }
        }
      });
}

// Threads own channels, not rows: a token met twice is summed by one thread, in order.
void cpu::embedding_backward(const EmbeddingInput<float>& input, View<const float> d_out,
                             const EmbeddingGradients<float>& gradients) {
  checks::embedding(input, d_out, gradients, "d_out");
  const std::int64_t positions = d_out.extent(1), channels = d_out.extent(2);
  if (d_out.size() == 0) return;
  const std::int64_t rows = d_out.extent(0) * positions;
  const auto accumulate = [&](View<float> table, std::int64_t index, float scale, std::int64_t row,
                              std::int64_t begin, std::int64_t end) {
    if (!table.present()) return;
    float* const to = table.data() + index * channels + begin;
    const float* const from = d_out.data() + row * channels + begin;
    const auto count = static_cast<std::size_t>(end - begin);
    if (scale == 1.0F) {
      HWY_DYNAMIC_DISPATCH(AddRange)(to, from, count, to);
    } else {
      HWY_DYNAMIC_DISPATCH(ScaleAddRange)(scale, from, to, count, to);
    }
  };
  parallel_ranges((channels + 15) / 16, cheap_grain / (16 * rows) + 1,
                  [&](std::int64_t first, std::int64_t last) {
                    const std::int64_t begin = first * 16, end = std::min(last * 16, channels);
                    for (std::int64_t row = 0; row < rows; ++row) {
                      accumulate(gradients.position_table,
                                 input.position(row / positions, row % positions), 1.0F, row, begin,
                                 end);
                      accumulate(gradients.token_table, input.tokens.data()[row], input.token_scale,
                                 row, begin, end);
                    }
                  });
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
