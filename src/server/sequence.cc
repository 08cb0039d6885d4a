#include "server/sequence.h"

#include <chrono>
#include <iterator>

namespace heed::server {
namespace {

// Pieces that wait for the connection's thread: enough to hide the jitter of both sides.
constexpr std::size_t max_pieces = 256;
constexpr std::chrono::milliseconds waiting_time{50};

}  // namespace

void Notifier::notify() {
  {
    const std::lock_guard lock(mutex_);
    notified_ = true;
  }
  changed_.notify_one();
}

void Notifier::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, waiting_time, [&] { return notified_; });
  notified_ = false;
}

Sequence::Sequence(SequenceOptions options, std::shared_ptr<Notifier> notifier,
                   std::function<void()> wake)
    : options_(std::move(options)), notifier_(std::move(notifier)), wake_(std::move(wake)) {}

std::vector<Sequence::Piece> Sequence::take() {
  std::vector<Piece> taken;
  {
    const std::lock_guard lock(mutex_);
    if (pieces_.empty() && error_) std::rethrow_exception(error_);
    taken.assign(std::make_move_iterator(pieces_.begin()), std::make_move_iterator(pieces_.end()));
    pieces_.clear();
  }
  if (taken.size() >= max_pieces) wake_();
  return taken;
}

std::optional<SequenceEnd> Sequence::end() const {
  const std::lock_guard lock(mutex_);
  return pieces_.empty() ? end_ : std::nullopt;
}

std::int64_t Sequence::drawn() const {
  const std::lock_guard lock(mutex_);
  return drawn_;
}

void Sequence::abandon() {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
  }
  wake_();
}

bool Sequence::wanted() const {
  const std::lock_guard lock(mutex_);
  return !abandoned_ && !stop_requested(options_.stop);
}

bool Sequence::has_room() const {
  const std::lock_guard lock(mutex_);
  return pieces_.size() < max_pieces;
}

void Sequence::give(Piece piece) {
  {
    const std::lock_guard lock(mutex_);
    if (piece.token) ++drawn_;
    pieces_.push_back(std::move(piece));
  }
  notifier_->notify();
}

void Sequence::finish(SequenceEnd end) {
  {
    const std::lock_guard lock(mutex_);
    end_ = end;
  }
  notifier_->notify();
}

void Sequence::fail(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
  }
  notifier_->notify();
}

}  // namespace heed::server
