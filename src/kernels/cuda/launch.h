// How the program calls the library: shapes are checked here, with the processor's compiler, and
// plain structs go there.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "tensor/device.h"
#include "tensor/device_library.h"
#include "tensor/device_recording.h"
#include "tensor/tensor.h"

namespace heed::kernels::cuda {

template <class T>
HeedView plain(const View<T>& view) {
  HeedView plain{};
  plain.data = const_cast<std::remove_const_t<T>*>(view.data());
  plain.rank = view.rank();
  for (int i = 0; i < view.rank(); ++i) {
    plain.extent[i] = view.extent(i);
    plain.stride[i] = view.stride(i);
  }
  return plain;
}

// The elements of a contiguous view that a kernel writes to, or reads.
template <class T>
T* numbers_of(const View<T>& view) {
  check(!view.present() || view.contiguous(), "a contiguous view");
  return view.data();
}

// A function of the library, looked up once: `static const Function<HeedAdd> add("add");`
template <class Operands>
class Function {
 public:
  explicit Function(const char* name)
      : name_(name),
        function_(
            reinterpret_cast<HeedCudaResult (*)(const Operands*)>(accelerator_function(name))) {}

  // Throws Error{unsupported} with what CUDA says where a launch fails.
  void operator()(const Operands& operands) const {
    const HeedCudaResult result = function_(&operands);
    require(result == nullptr, ErrorCode::unsupported, "CUDA: {} failed: {}", name_, result);
  }

 private:
  const char* name_;
  HeedCudaResult (*function_)(const Operands*);
};

// Numbers of the processor, copied to the device for what is launched next.
template <class T>
class Uploaded {
 public:
  explicit Uploaded(std::span<const T> numbers)
      : memory_(numbers.empty() ? Memory()
                                : Memory(allocate_on_accelerator(numbers.size_bytes()), {})) {
    copy_bytes(memory_.get(), numbers.data(), numbers.size_bytes());
  }

  const T* data() const { return reinterpret_cast<const T*>(memory_.get()); }

 private:
  Memory memory_;
};

// Memory of the device for one call; not zeroed.
template <class T>
class Scratch {
 public:
  explicit Scratch(std::int64_t count)
      : memory_(allocate_on_accelerator(static_cast<std::size_t>(count) * sizeof(T)), {}) {}

  T* data() const { return reinterpret_cast<T*>(memory_.get()); }

 private:
  Memory memory_;
};

// Where a kernel reads the number of the repetition, by which its positions move, while launches
// are recorded; null otherwise.
inline const int* repetition() {
  const DeviceRecording* const recording = DeviceRecording::current();
  return recording == nullptr ? nullptr : recording->repetition();
}

// A number that a kernel left on the device, once it is there.
template <class T>
T read_back(const T* number) {
  T value{};
  copy_bytes(&value, number, sizeof(T));
  return value;
}

}  // namespace heed::kernels::cuda
