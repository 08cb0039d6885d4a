#include "server/explorer/memory_budget.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/json.h"
#include "server/exchange.h"

namespace heed::server {
namespace {

// Blocks of the allocator, rounded up: a container with the storage of its first element, the node
// of a member, a string beside its text. Storage grows by doubling, and is copied then.
constexpr std::int64_t container_bytes = 96;
constexpr std::int64_t member_bytes = 128;
constexpr std::int64_t string_bytes = 64;
constexpr std::int64_t element_bytes = 3 * sizeof(Json);

}  // namespace

MemoryBudget::Share::~Share() {
  if (held_ != nullptr) held_->fetch_sub(bytes_);
}

void MemoryBudget::Share::swap(Share& other) noexcept {
  std::swap(held_, other.held_);
  std::swap(bytes_, other.bytes_);
}

void MemoryBudget::Share::absorb(Share other) {
  if (held_ == nullptr) return swap(other);
  bytes_ += std::exchange(other.bytes_, 0);
}

void MemoryBudget::take(Share& share, std::int64_t bytes, const std::function<bool()>& evict) {
  const std::int64_t wanted = share.bytes_ + bytes;
  if (wanted > limit_) {
    throw HttpError(413,
                    fmt::format("the request would hold {} or more, and {} may take {} "
                                "together; ask for less, or start with more: {}",
                                size_text(wanted), names_.held, size_text(limit_), names_.option));
  }
  while (!has_room(bytes)) {
    if (evict()) continue;
    throw HttpError(
        429, fmt::format("the request needs {}, and {} of the {} for {} are held by {}; retry "
                         "later, or start with more: {}",
                         size_text(wanted), size_text(held() - share.bytes_), size_text(limit_),
                         names_.held, names_.holders, names_.option));
  }
  share.held_ = held_;
  share.bytes_ = wanted;
  held_->fetch_add(bytes);
}

std::string size_text(std::int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::int64_t document_bytes(std::string_view text) {
  auto bytes = static_cast<std::int64_t>(2 * text.size());  // and of what strings hold
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '"':
        if (!in_string) bytes += string_bytes;
        in_string = !in_string;
        break;
      case '\\': i += in_string ? 1 : 0; break;
      case '[':
      case '{': bytes += in_string ? 0 : container_bytes; break;
      case ',': bytes += in_string ? 0 : element_bytes; break;
      case ':': bytes += in_string ? 0 : member_bytes; break;
      default: break;
    }
  }
  return bytes;
}

}  // namespace heed::server
