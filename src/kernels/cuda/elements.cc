// What moves, fills, adds up and compares numbers, on the device.
#include "kernels/cuda/elements.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

#include "kernels/backends.h"
#include "kernels/cuda/launch.h"
#include "kernels/placement.h"

namespace heed::kernels {
namespace {

using cuda::Function;
using cuda::Scratch;

// Views of one shape with as few dimensions as their strides allow, in the order of the strides of
// the first one, which is what is written, where anything is: elements may come in any order.
template <std::size_t count>
std::array<HeedView, count> folded(const std::array<HeedView, count>& views) {
  std::array<int, Shape::max_rank> order{};
  int rank = 0;
  for (int d = 0; d < views[0].rank; ++d) {
    if (views[0].extent[d] != 1) order[rank++] = d;
  }
  std::stable_sort(order.begin(), order.begin() + rank, [&](int a, int b) {
    return std::abs(views[0].stride[a]) > std::abs(views[0].stride[b]);
  });
  std::array<HeedView, count> results{};
  int kept = 0;
  for (int i = 0; i < rank; ++i) {
    const int d = order[i];
    const auto continues = [&](std::size_t n) {
      return results[n].stride[kept - 1] == views[n].stride[d] * views[n].extent[d];
    };
    bool merges = kept > 0;
    for (std::size_t n = 0; n < count; ++n) merges = merges && continues(n);
    for (std::size_t n = 0; n < count; ++n) {
      HeedView& result = results[n];
      if (merges) {
        result.extent[kept - 1] *= views[n].extent[d];
      } else {
        result.extent[kept] = views[n].extent[d];
      }
      result.stride[merges ? kept - 1 : kept] = views[n].stride[d];
    }
    if (!merges) ++kept;
  }
  for (std::size_t n = 0; n < count; ++n) {
    if (kept == 0) results[n].extent[0] = results[n].stride[0] = 1;
    results[n].data = views[n].data;
    results[n].rank = std::max(kept, 1);
  }
  return results;
}

template <class... T>
auto folded_views(const View<T>&... views) {
  return folded(std::array<HeedView, sizeof...(T)>{cuda::plain(views)...});
}

template <class T>
bool is_the_same(const View<const T>& from, const View<T>& to) {
  return from.data() == to.data() && from.strides() == to.strides();
}

}  // namespace

void cuda::fill(View<float> x, float value) {
  if (x.size() == 0) return;
  if (x.contiguous() && std::bit_cast<std::uint32_t>(value) == 0) {
    return clear_bytes(x.data(), static_cast<std::size_t>(x.size()) * sizeof(float));
  }
  static const Function<HeedElementOperands> launch("fill");
  launch({.out = folded_views(x)[0], .number = value});
}

void cuda::copy(View<const float> from, View<float> to) {
  require_shape(to, from.shape(), "the copy");
  if (to.size() == 0 || is_the_same(from, to)) return;
  if (from.contiguous() && to.contiguous()) {
    return copy_bytes(to.data(), from.data(), static_cast<std::size_t>(to.size()) * sizeof(float));
  }
  static const Function<HeedElementOperands> launch("copy");
  const auto [target, source] = folded_views(to, from);
  launch({.x = source, .out = target});
}

void cuda::copy(View<const std::byte> from, View<std::byte> to) {
  require_shape(to, from.shape(), "the copy");
  if (to.size() == 0 || is_the_same(from, to)) return;
  if (from.contiguous() && to.contiguous()) {
    return copy_bytes(to.data(), from.data(), static_cast<std::size_t>(to.size()));
  }
  static const Function<HeedByteCopy> launch("copy_strided_bytes");
  const auto [target, source] = folded_views(to, from);
  launch({.from = source, .to = target});
}

void cuda::wait_for_all_streams() {
  static const auto wait =
      reinterpret_cast<decltype(&heed_cuda_wait_for_all)>(accelerator_function("wait_for_all"));
  const HeedCudaResult result = wait();
  require(result == nullptr, ErrorCode::unsupported, "CUDA: waiting for all streams failed: {}",
          result);
}

// Never by copy_bytes(), which takes addresses that are not heed's for the processor's.
void cuda::copy_shared(View<const std::byte> from, View<std::byte> to) {
  if (to.size() == 0) return;
  static const Function<HeedByteCopy> launch("copy_strided_bytes");
  const auto [target, source] = folded_views(to, from);
  launch({.from = source, .to = target});
}

void cuda::scale(View<float> x, float factor) {
  if (x.size() == 0) return;
  static const Function<HeedElementOperands> launch("scale");
  launch({.out = folded_views(x)[0], .number = factor});
}

void cuda::accumulate(View<const float> from, View<float> to, float factor) {
  require_shape(to, from.shape(), "the sum");
  if (to.size() == 0) return;
  static const Function<HeedElementOperands> launch("accumulate");
  const auto [target, source] = folded_views(to, from);
  launch({.x = source, .out = target, .number = factor});
}

void cuda::subtract(View<const float> x, View<const float> y, View<float> out) {
  require_shape(y, x.shape(), "y");
  require_shape(out, x.shape(), "out");
  if (out.size() == 0) return;
  static const Function<HeedElementOperands> launch("subtract");
  const auto [difference, a, b] = folded_views(out, x, y);
  launch({.x = a, .y = b, .out = difference});
}

void cuda::reciprocal(View<const float> x, View<float> out) {
  require_shape(out, x.shape(), "out");
  if (out.size() == 0) return;
  static const Function<HeedElementOperands> launch("reciprocal");
  const auto [target, source] = folded_views(out, x);
  launch({.x = source, .out = target});
}

bool cuda::equal_bits(View<const float> x, View<const float> y) {
  require_shape(y, x.shape(), "y");
  if (x.size() == 0) return true;
  const Scratch<unsigned> found(1);
  clear_bytes(found.data(), sizeof(unsigned));
  static const Function<HeedElementOperands> launch("find_different_bits");
  const auto [a, b] = folded_views(x, y);
  launch({.x = a, .y = b, .found = found.data()});
  return read_back(found.data()) == 0;
}

// In the order of the indices: a processor's core adds one number after another faster than a
// thread of a device.
double cuda::sum(View<const float> x, double start) { return on_processor<cpu::sum>(x, start); }

}  // namespace heed::kernels
