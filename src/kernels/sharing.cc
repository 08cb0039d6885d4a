#include "kernels/sharing.h"

#include "base/error.h"
#include "kernels/backends.h"

namespace heed::kernels {

void wait_for_all_streams() {
  if (opened_device().is_cpu()) return;
  if constexpr (can_have_accelerators) cuda::wait_for_all_streams();
}

void copy_shared(View<const std::byte> from, View<std::byte> to) {
  require_shape(to, from.shape(), "the copy");
  check(to.size() == 0 || !to.device().is_cpu(), "a copy on the accelerator");
  if constexpr (can_have_accelerators) cuda::copy_shared(from, to);
}

}  // namespace heed::kernels
