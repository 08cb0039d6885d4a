// Bytes that what a server keeps may hold together: stored passes with the requests that make them,
// or models.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace heed::server {

class MemoryBudget {
 public:
  // A part of the budget, given back when it is destroyed, on any thread.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept { swap(other); }
    Share& operator=(Share&& other) noexcept {
      swap(other);
      return *this;
    }
    ~Share();

    std::int64_t bytes() const { return bytes_; }
    // Takes over what the other holds.
    void absorb(Share other);

   private:
    friend class MemoryBudget;
    void swap(Share& other) noexcept;

    std::shared_ptr<std::atomic<std::int64_t>> held_;  // by all shares of the budget
    std::int64_t bytes_ = 0;
  };

  // As messages call what is held, and the option that raises the limit.
  struct Names {
    const char* held = "traces and their interventions";
    const char* holders = "the traces that it names and by requests in progress";
    const char* option = "--trace-budget";
  };

  explicit MemoryBudget(std::int64_t limit) : limit_(limit) {}
  MemoryBudget(std::int64_t limit, const Names& names) : limit_(limit), names_(names) {}

  std::int64_t limit() const { return limit_; }
  std::int64_t held() const { return held_->load(); }  // by all shares
  bool has_room(std::int64_t bytes) const { return held() + bytes <= limit_; }

  // Adds to a share, to be called before the memory is allocated. While it does not fit, calls
  // `evict`, which gives something back, or returns false where nothing is left. Then throws
  // HttpError: 413 where the share alone exceeds the limit, else 429. Calls must not overlap.
  void take(Share& share, std::int64_t bytes, const std::function<bool()>& evict);

 private:
  std::int64_t limit_;
  Names names_{};
  std::shared_ptr<std::atomic<std::int64_t>> held_ = std::make_shared<std::atomic<std::int64_t>>(0);
};

// "24.1 MiB", for messages.
std::string size_text(std::int64_t bytes);

// Bytes of the heap that the document of a JSON text takes at most, with what the allocator adds to
// each block, and of the text itself. For text that is not JSON, anything.
std::int64_t document_bytes(std::string_view text);

}  // namespace heed::server
