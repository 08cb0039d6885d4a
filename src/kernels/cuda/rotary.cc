// Rotary position embeddings, on the device.
#include "kernels/cuda/rotary.h"

#include "kernels/backends.h"
#include "kernels/cuda/launch.h"
#include "kernels/operand_checks.h"

namespace heed::kernels {
namespace {

void rotate_heads(const View<float>& x, const RotaryTable<float>& table, float direction) {
  checks::rotary(x, table);
  const std::int64_t pairs = table.cosine.extent(1);
  if (x.size() == 0 || pairs == 0) return;
  static const cuda::Function<HeedRotary> launch("rotate_heads");
  launch({.rows = x.extent(0),
          .heads = x.extent(1),
          .pairs = pairs,
          .x = x.data(),
          .row_stride = x.stride(0),
          .head_stride = x.stride(1),
          .cosine = table.cosine.data(),
          .sine = table.sine.data(),
          .repetition = cuda::repetition(),
          .neighbours = table.pairing == RotaryPairing::neighbours ? 1 : 0,
          .direction = direction});
}

}  // namespace

void cuda::rotary_forward(View<float> x, const RotaryTable<float>& table) {
  rotate_heads(x, table, 1.0F);
}

void cuda::rotary_backward(View<float> d_x, const RotaryTable<float>& table) {
  rotate_heads(d_x, table, -1.0F);
}

}  // namespace heed::kernels
