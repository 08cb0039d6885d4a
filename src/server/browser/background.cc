// One thread: a piece is a job, which posts the next one.
#include "server/background.h"

#include <utility>

namespace heed::server {

void Background::start(Piece piece) {
  join();
  piece_ = std::move(piece);
  woken_ = true;
  compute_.post_last([this] { work(piece_); });
}

void Background::wake() {
  if (!piece_ || woken_) return;
  woken_ = true;
  compute_.post_last([this] { work(piece_); });
}

void Background::join() {
  while (piece_ && woken_ && compute_.work_once()) {
  }
}

void Background::wait_for(std::unique_lock<std::mutex>& lock, std::condition_variable&,
                          const std::function<bool()>& has_come) {
  while (!has_come()) {
    lock.unlock();
    const bool has_worked = compute_.work_once();
    lock.lock();
    if (!has_worked) return;
  }
}

void Background::work(const Piece& piece) {
  const Next next = piece();
  woken_ = next == Next::piece;
  if (woken_) compute_.post_last([this] { work(piece_); });
  if (next == Next::end) piece_ = nullptr;
}

}  // namespace heed::server
