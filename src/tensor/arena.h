// Arena: one allocation divided into named tensors, in a fixed order. Parameters, gradients and
// optimizer moments are arenas of one layout, so that operations on all of them are single loops.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tensor/tensor.h"

namespace heed {

// Names, shapes and offsets (in elements), without memory.
class ArenaLayout {
 public:
  struct Entry {
    std::string name;
    Shape shape;
    std::int64_t offset = 0;  // a multiple of 16 elements: each f32 tensor starts a cache line
  };

  // Returns its index. Throws Error{invalid_argument}: a name used already, over 2^56 elements.
  std::size_t add(std::string name, const Shape& shape);

  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(std::string_view name) const;  // null when absent
  std::int64_t size() const { return size_; }      // elements, padding included

 private:
  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> index_;
  std::int64_t size_ = 0;
};

// Whether an arena has memory for all of its tensors, or only their addresses at first.
enum class ArenaMemory { whole, reserved };

template <class T>
class Arena {
 public:
  Arena() = default;
  Arena(const ArenaLayout& layout, ArenaMemory memory, Device device = {})
      : memory_(memory == ArenaMemory::whole || !device.is_cpu()
                    ? Tensor<T>(Shape{layout.size()}, device)
                    : Tensor<T>(reserve_memory(static_cast<std::size_t>(layout.size()) * sizeof(T)),
                                Shape{layout.size()})) {}
  explicit Arena(const ArenaLayout& layout, Device device = {})  // zeroed
      : memory_(Shape{layout.size()}, device) {}

  std::span<T> all() { return memory_.span(); }
  std::span<const T> all() const { return memory_.span(); }
  bool present() const { return memory_.present(); }
  Device device() const { return memory_.device(); }

  View<T> view(const ArenaLayout::Entry& entry) {
    return {memory_.data() + entry.offset, entry.shape};
  }
  View<const T> view(const ArenaLayout::Entry& entry) const {
    return {memory_.data() + entry.offset, entry.shape};
  }
  // Of a view of another arena of the same layout, the same elements of this one.
  View<const T> same_of(const Arena& other, View<const T> view) const {
    return {memory_.data() + (view.data() - other.memory_.data()), view.shape(), view.strides()};
  }

 private:
  Tensor<T> memory_;
};

}  // namespace heed
