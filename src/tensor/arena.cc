#include "tensor/arena.h"

#include "base/error.h"

namespace heed {

std::size_t ArenaLayout::add(std::string name, const Shape& shape) {
  require(index_.emplace(name, entries_.size()).second, ErrorCode::invalid_argument,
          "the arena already has a tensor named '{}'", name);
  constexpr std::int64_t cache_line = 16;
  // Larger than any memory, and small enough that the bytes of several arenas fit in 63 bits.
  constexpr std::int64_t max_elements = std::int64_t{1} << 56;
  require(shape.size() <= max_elements && size_ <= max_elements - shape.size(),
          ErrorCode::invalid_argument, "'{}' of shape {} makes an arena of more than 2^56 elements",
          name, shape.text());
  entries_.push_back({std::move(name), shape, size_});
  size_ += (shape.size() + cache_line - 1) / cache_line * cache_line;
  return entries_.size() - 1;
}

const ArenaLayout::Entry* ArenaLayout::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &entries_[found->second];
}

}  // namespace heed
