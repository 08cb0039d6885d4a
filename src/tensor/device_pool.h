// Divides a range of addresses among blocks of memory, and maps memory to those that are in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace heed {

// Not for several threads at once. Best fit: the smallest gap that is large enough, the first of
// several. Memory is mapped in chunks, and given back when none of it has been in use for a while:
// whole chunks once `keep` bytes of unused ones have gathered, all of it when nothing is in use.
class DevicePool {
 public:
  // `map` and `unmap` (offset, bytes) chunks. `map` returns false where the device has no memory,
  // `unmap` where it does not let go: the chunks then stay as they are.
  struct Chunks {
    std::size_t bytes;  // a power of two
    std::function<bool(std::size_t offset, std::size_t bytes)> map;
    std::function<bool(std::size_t offset, std::size_t bytes)> unmap;
  };
  DevicePool(std::size_t addresses, Chunks chunks, std::size_t keep);

  static constexpr std::size_t unit = 512;  // bytes: blocks are multiples of it
  static constexpr std::size_t none = SIZE_MAX;

  // The offset of a block; `none` where there is no room.
  std::size_t take(std::size_t bytes);
  void give_back(std::size_t offset);

  std::size_t used() const { return used_; }
  std::size_t mapped() const { return mapped_; }
  std::size_t largest() const { return largest_; }

 private:
  using Gap = std::pair<std::size_t, std::size_t>;  // (bytes, offset)

  bool map_chunks(std::size_t offset, std::size_t bytes);
  // Unmaps chunks that no block is in.
  void unmap_unused();
  std::size_t chunks_of(std::size_t offset, std::size_t bytes, std::size_t& first) const;
  void add_gap(std::size_t offset, std::size_t bytes);
  void remove_gap(std::map<std::size_t, std::size_t>::iterator gap);

  Chunks chunks_;
  std::size_t keep_;
  std::map<std::size_t, std::size_t> gaps_;  // bytes by offset
  std::set<Gap> by_size_;
  std::unordered_map<std::size_t, std::size_t> blocks_;  // bytes by offset
  std::vector<std::uint32_t> users_;                     // blocks in each chunk that was ever used
  std::vector<bool> is_mapped_;
  std::size_t used_ = 0, mapped_ = 0, unused_ = 0, largest_ = 0;
};

}  // namespace heed
