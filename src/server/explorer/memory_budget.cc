#include "server/explorer/memory_budget.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "server/exchange.h"

namespace heed::server {
namespace {

constexpr std::int64_t block_overhead = 16;  // of an allocation: its size and the rounding
// Of a member: its key, its value, and the links of the tree.
constexpr std::int64_t member_bytes =
    sizeof(std::string) + sizeof(Json) + 4 * sizeof(void*) + block_overhead;

std::int64_t text_bytes(const std::string& text) {
  const bool is_inside = text.capacity() < sizeof(std::string) / 2;
  return is_inside ? 0 : static_cast<std::int64_t>(text.capacity()) + block_overhead;
}

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
    throw HttpError(413, fmt::format("the request would hold {} or more, and traces and their "
                                     "interventions may take {} together; ask for less, or start "
                                     "with more: --trace-budget",
                                     size_text(wanted), size_text(limit_)));
  }
  while (!has_room(bytes)) {
    if (evict()) continue;
    throw HttpError(
        429, fmt::format("the request needs {}, and {} of the {} for traces and their "
                         "interventions are held by the traces that it names and by "
                         "requests in progress; retry later, or start with more: "
                         "--trace-budget",
                         size_text(wanted), size_text(held() - share.bytes_), size_text(limit_)));
  }
  share.held_ = held_;
  share.bytes_ = wanted;
  held_->fetch_add(bytes);
}

std::string size_text(std::int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::int64_t json_bytes(const Json& document) {
  std::int64_t bytes = 0;
  switch (document.type()) {
    case Json::value_t::object:
      bytes = sizeof(Json::object_t) + block_overhead;
      for (const auto& [key, value] : document.items()) {
        bytes += member_bytes + text_bytes(key) + json_bytes(value);
      }
      return bytes;
    case Json::value_t::array: {
      const auto& elements = document.get_ref<const Json::array_t&>();
      bytes =
          static_cast<std::int64_t>(sizeof(Json::array_t) + sizeof(Json) * elements.capacity()) +
          2 * block_overhead;
      for (const Json& element : elements) bytes += json_bytes(element);
      return bytes;
    }
    case Json::value_t::string: {
      const auto& text = document.get_ref<const std::string&>();
      return static_cast<std::int64_t>(sizeof(std::string)) + block_overhead + text_bytes(text);
    }
    default: return 0;  // within the value itself
  }
}

}  // namespace heed::server
