#include "kernels/operand_checks.h"
#include "kernels/reference/reference.h"

namespace heed::kernels::reference {
namespace {

// Rotates by the angles of the table, or by the opposite ones for a `direction` of −1.
template <class T>
void rotate(const View<T>& x, const RotaryTable<T>& table, T direction) {
  checks::rotary(x, table);
  const std::int64_t pairs = table.cosine.extent(1);
  const bool halves = table.pairing == RotaryPairing::halves;
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    for (std::int64_t h = 0; h < x.extent(1); ++h) {
      for (std::int64_t i = 0; i < pairs; ++i) {
        const T cosine = table.cosine(n, i), sine = direction * table.sine(n, i);
        T& first = x(n, h, halves ? i : 2 * i);
        T& second = x(n, h, halves ? i + pairs : 2 * i + 1);
        const T rotated = first * cosine - second * sine;
        second = second * cosine + first * sine;
        first = rotated;
      }
    }
  }
}

}  // namespace

template <class T>
void rotary_forward(View<T> x, const RotaryTable<T>& table) {
  rotate(x, table, T(1));
}

template <class T>
void rotary_backward(View<T> d_x, const RotaryTable<T>& table) {
  rotate(d_x, table, T(-1));
}

template void rotary_forward<float>(View<float>, const RotaryTable<float>&);
template void rotary_forward<double>(View<double>, const RotaryTable<double>&);
template void rotary_backward<float>(View<float>, const RotaryTable<float>&);
template void rotary_backward<double>(View<double>, const RotaryTable<double>&);

}  // namespace heed::kernels::reference
