#include "tensor/device_pool.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace heed {

DevicePool::DevicePool(std::size_t addresses, Chunks chunks, std::size_t keep)
    : chunks_(std::move(chunks)), keep_(keep) {
  check(chunks_.bytes % unit == 0 && addresses % chunks_.bytes == 0, "whole chunks of addresses");
  users_.resize(addresses / chunks_.bytes);
  is_mapped_.resize(users_.size());
  add_gap(0, addresses);
}

void DevicePool::add_gap(std::size_t offset, std::size_t bytes) {
  gaps_.emplace(offset, bytes);
  by_size_.emplace(bytes, offset);
}

void DevicePool::remove_gap(std::map<std::size_t, std::size_t>::iterator gap) {
  by_size_.erase({gap->second, gap->first});
  gaps_.erase(gap);
}

std::size_t DevicePool::chunks_of(std::size_t offset, std::size_t bytes, std::size_t& first) const {
  first = offset / chunks_.bytes;
  return (offset + bytes - 1) / chunks_.bytes + 1;
}

bool DevicePool::map_chunks(std::size_t offset, std::size_t bytes) {
  std::size_t first = 0;
  const std::size_t end = chunks_of(offset, bytes, first);
  for (std::size_t begin = first; begin < end;) {
    if (is_mapped_[begin]) {
      ++begin;
      continue;
    }
    std::size_t last = begin;
    while (last < end && !is_mapped_[last]) ++last;
    const std::size_t size = (last - begin) * chunks_.bytes;
    if (!chunks_.map(begin * chunks_.bytes, size)) return false;
    std::fill(is_mapped_.begin() + static_cast<std::ptrdiff_t>(begin),
              is_mapped_.begin() + static_cast<std::ptrdiff_t>(last), true);
    mapped_ += size;
    unused_ += size;
    begin = last;
  }
  return true;
}

void DevicePool::unmap_unused() {
  for (std::size_t begin = 0; begin < users_.size() && unused_ > 0;) {
    if (!is_mapped_[begin] || users_[begin] > 0) {
      ++begin;
      continue;
    }
    std::size_t end = begin;
    while (end < users_.size() && is_mapped_[end] && users_[end] == 0) ++end;
    const std::size_t size = (end - begin) * chunks_.bytes;
    if (!chunks_.unmap(begin * chunks_.bytes, size)) return;
    std::fill(is_mapped_.begin() + static_cast<std::ptrdiff_t>(begin),
              is_mapped_.begin() + static_cast<std::ptrdiff_t>(end), false);
    mapped_ -= size;
    unused_ -= size;
    begin = end;
  }
}

std::size_t DevicePool::take(std::size_t bytes) {
  if (bytes == 0 || bytes > users_.size() * chunks_.bytes) return none;
  const std::size_t size = (bytes + unit - 1) / unit * unit;
  const auto smallest = by_size_.lower_bound({size, 0});
  if (smallest == by_size_.end()) return none;
  const std::size_t offset = smallest->second, whole = smallest->first;
  if (!map_chunks(offset, size)) {
    unmap_unused();
    if (!map_chunks(offset, size)) return none;
  }
  remove_gap(gaps_.find(offset));
  if (whole > size) add_gap(offset + size, whole - size);
  blocks_.emplace(offset, size);
  std::size_t first = 0;
  const std::size_t end = chunks_of(offset, size, first);
  for (std::size_t chunk = first; chunk < end; ++chunk) {
    if (users_[chunk]++ == 0) unused_ -= chunks_.bytes;
  }
  used_ += size;
  largest_ = std::max(largest_, used_);
  return offset;
}

void DevicePool::give_back(std::size_t offset) {
  const auto block = blocks_.find(offset);
  check(block != blocks_.end(), "a block of the pool");
  const std::size_t size = block->second;
  blocks_.erase(block);
  used_ -= size;
  std::size_t first = 0;
  const std::size_t chunk_end = chunks_of(offset, size, first);
  for (std::size_t chunk = first; chunk < chunk_end; ++chunk) {
    if (--users_[chunk] == 0) unused_ += chunks_.bytes;
  }
  std::size_t begin = offset, end = offset + size;
  auto next = gaps_.lower_bound(offset);
  if (next != gaps_.end() && next->first == end) {
    end += next->second;
    remove_gap(next++);
  }
  next = gaps_.lower_bound(offset);
  if (next != gaps_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == begin) {
      begin = previous->first;
      remove_gap(previous);
    }
  }
  add_gap(begin, end - begin);
  if (unused_ > keep_ || used_ == 0) unmap_unused();
}

}  // namespace heed
