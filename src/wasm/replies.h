// Replies that go on, piece by piece, in one thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/exchange.h"

namespace heed::wasm {

// Where replies go: the page.
struct Page {
  std::function<void(std::uint32_t id, const server::Reply& head)> head;
  std::function<bool(std::uint32_t id, std::string_view bytes)> chunk;  // false: no more is wanted
  std::function<void(std::uint32_t id, const std::string& error)> end;  // empty: it is whole
};

class Replies {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Replies(Page page) : page_(std::move(page)) {}
  ~Replies();  // ends all
  Replies(const Replies&) = delete;
  Replies& operator=(const Replies&) = delete;

  // What a request is made with: set by stop(). Ends an earlier reply of this id.
  std::shared_ptr<std::atomic<bool>> begin(std::uint32_t id);
  // Sends the reply of the request that began; one that streams goes on in step().
  void answer(std::uint32_t id, server::Reply reply);
  void stop(std::uint32_t id);

  // Writes the next piece of the reply that waits longest for its turn; false: none has one now.
  bool step();
  // When the next one has its turn; nothing where none goes on.
  std::optional<Clock::time_point> next_turn() const;

 private:
  class Writer;
  struct Open {
    std::uint32_t id = 0;
    std::shared_ptr<std::atomic<bool>> stop;
    server::Reply reply{};
    Clock::time_point turn{};
  };

  std::list<Open>::iterator find(std::uint32_t id);
  void end(std::list<Open>::iterator open, const std::string& error);

  Page page_;
  std::list<Open> open_;
};

}  // namespace heed::wasm
