// Tensor<T>: elements it owns, contiguous, aligned to 64 bytes (a cache line and an AVX-512
// register).
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "tensor/device.h"
#include "tensor/view.h"

namespace heed {

// Allocates `bytes` zeroed bytes, aligned to 64, owned by the pointer. Large blocks use huge pages
// if available; very large ones are committed when touched. Throws Error{out_of_memory} with the
// size.
struct ReleaseMemory {
  std::size_t mapped = 0;  // bytes mapped from the system; 0: from the heap, or an accelerator's

  void operator()(std::byte* memory) const noexcept;
};
using Memory = std::unique_ptr<std::byte, ReleaseMemory>;
Memory allocate_memory(std::size_t bytes);
// The same on a device.
Memory allocate_memory(std::size_t bytes, Device device);
// The same, where an accelerator's memory holds anything: for what is written to at once.
Memory allocate_uncleared(std::size_t bytes, Device device);

// Addresses for `bytes` bytes, without memory: what lies at them must not be touched before
// commit_memory(). They count against a limit of addresses (ulimit -v), not of data (ulimit -d).
Memory reserve_memory(std::size_t bytes);
// Of the system; reserved addresses are committed and released in whole pages of it.
std::size_t page_bytes();
// Makes pages of reserved addresses usable, and zero where they were not yet. Throws
// Error{out_of_memory}.
void commit_memory(std::span<std::byte> pages);
// Makes usable pages zero again, without memory until they are written to.
void clear_memory(std::span<std::byte> pages);
// Gives the memory of pages back to the system, and their contents up.
void release_memory(std::span<std::byte> pages);

template <class T>
class Tensor {
 public:
  Tensor() = default;
  // Of memory that holds the elements of the shape, or will.
  Tensor(Memory memory, const Shape& shape) : memory_(std::move(memory)), shape_(shape) {}
  explicit Tensor(const Shape& shape, Device device = {})  // zeroed
      : memory_(allocate_memory(static_cast<std::size_t>(shape.size()) * sizeof(T), device)),
        shape_(shape) {}

  bool present() const { return memory_ != nullptr; }
  const Shape& shape() const { return shape_; }
  Device device() const { return device_of(memory_.get()); }
  std::int64_t size() const { return memory_ ? shape_.size() : 0; }
  T* data() { return reinterpret_cast<T*>(memory_.get()); }
  const T* data() const { return reinterpret_cast<const T*>(memory_.get()); }
  View<T> view() { return {data(), shape_}; }
  View<const T> view() const { return {data(), shape_}; }
  operator View<T>() { return view(); }
  operator View<const T>() const { return view(); }
  std::span<T> span() { return {data(), static_cast<std::size_t>(size())}; }
  std::span<const T> span() const { return {data(), static_cast<std::size_t>(size())}; }
  // These two touch memory of the processor.
  T& operator[](std::int64_t index) { return data()[index]; }  // flat index
  const T& operator[](std::int64_t index) const { return data()[index]; }
  void fill(T value) { std::fill_n(data(), size(), value); }

 private:
  Memory memory_;
  Shape shape_{};
};

}  // namespace heed
