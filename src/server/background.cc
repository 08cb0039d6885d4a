#include "server/background.h"

#include <chrono>
#include <utility>

namespace heed::server {
namespace {

constexpr std::chrono::seconds max_wait{5};

}  // namespace

void Background::start(Piece piece) {
  join();
  thread_ = std::thread([this, piece = std::move(piece)] { work(piece); });
}

void Background::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

void Background::join() {
  if (thread_.joinable()) thread_.join();
}

void Background::wait_for(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                          const std::function<bool()>& has_come) {
  changed.wait_for(lock, max_wait, has_come);
}

void Background::work(const Piece& piece) {
  while (true) {
    const Next next = piece();
    if (next == Next::end) return;
    if (next == Next::wake) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return woken_; });
      woken_ = false;
    }
    compute_.run(nullptr, [] {});
  }
}

}  // namespace heed::server
