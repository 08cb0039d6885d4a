// Values of an accelerator, where the processor may touch them.
#pragma once

#include "kernels/elements.h"
#include "tensor/tensor.h"

namespace heed {

// A view of values, or of a copy of them, contiguous, while they lie on an accelerator. Borrowed.
class Here {
 public:
  explicit Here(View<const float> values) : values_(values) {
    if (values.device().is_cpu()) return;
    copy_ = Tensor<float>(values.shape());
    kernels::copy(values, copy_);
    values_ = copy_;
  }

  View<const float> values() const { return values_; }

 private:
  Tensor<float> copy_;
  View<const float> values_;
};

// The same of values that change, which go back when they are finished.
class HereAndBack {
 public:
  explicit HereAndBack(View<float> values) : there_(values), values_(values) {
    if (values.device().is_cpu()) return;
    copy_ = Tensor<float>(values.shape());
    kernels::copy(values, copy_);
    values_ = copy_;
  }

  View<float> values() const { return values_; }
  void finish() const {
    if (copy_.present()) kernels::copy(copy_, there_);
  }

 private:
  Tensor<float> copy_;
  View<float> there_, values_;
};

}  // namespace heed
