#include "server/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <thread>

namespace heed::server {
namespace {

// How often a wait checks whether the request was cancelled.
constexpr std::chrono::milliseconds polling_time{50};
constexpr std::chrono::seconds linger_time{1};
constexpr HttpOptions::Seconds max_time{1e9};  // what a clock can count with
constexpr std::size_t max_lingering_bytes = 64 << 20;
// For a stream's error message after its end, to a client that reads.
constexpr std::chrono::milliseconds last_words_time{500};

}  // namespace

Connection::Connection(int socket, const HttpOptions& options, const std::atomic<bool>& stopping)
    : socket_(socket), options_(options), stopping_(stopping) {}

Connection::~Connection() { ::close(socket_); }

Connection::Clock::time_point Connection::after(HttpOptions::Seconds time) {
  const auto bounded = std::min(time, max_time);
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(bounded);
}

bool Connection::wait(short event, Clock::time_point deadline,
                      const std::atomic<bool>* stopping) const {
  while (true) {
    if (ended_.load() || (stopping != nullptr && stopping->load())) return false;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd polled{.fd = socket_, .events = event, .revents = 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(std::min(left, polling_time).count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

Connection::Input Connection::receive(Clock::time_point deadline) {
  while (true) {
    if (!wait(POLLIN, deadline, &stopping_)) {
      return stopping_.load() || ended_.load() ? Input::server_stops : Input::out_of_time;
    }
    std::array<char, 16384> bytes;
    const ssize_t count = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (count > 0) {
      unread_.append(bytes.data(), static_cast<std::size_t>(count));
      return Input::received;
    }
    if (count == 0 || (errno != EINTR && errno != EAGAIN)) return Input::closed;
  }
}

bool Connection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    if (ending_.load() == Ending::client_left) return false;
    if (ended_.load() && Clock::now() > last_words_deadline_.load()) return false;
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (sent < 0 && errno == EINTR) continue;
    const bool is_full = sent < 0 && errno == EAGAIN;
    if (!is_full || !wait(POLLOUT, after(options_.write_time), nullptr)) {
      end(Ending::client_left);
      return false;
    }
  }
  return true;
}

void Connection::linger() {
  ::shutdown(socket_, SHUT_WR);
  const Clock::time_point deadline = Clock::now() + linger_time;
  std::array<char, 16384> bytes;
  std::size_t drained = 0;
  while (drained < max_lingering_bytes && wait(POLLIN, deadline, nullptr)) {
    const ssize_t count = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (count <= 0) return;
    drained += static_cast<std::size_t>(count);
  }
}

void Connection::begin_reply() {
  reply_deadline_.store(after(options_.request_time));
  replying_.store(true);
}

void Connection::watch() {
  if (!replying_.load() || ended_.load()) return;
  if (Clock::now() > reply_deadline_.load()) return end(Ending::out_of_time);
  // Pipelined requests are ignored here; the end of the stream is not.
  pollfd polled{.fd = socket_, .events = POLLRDHUP, .revents = 0};
  if (::poll(&polled, 1, 0) > 0 && (polled.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
    end(Ending::client_left);
  }
}

void Connection::end(Ending ending) {
  Ending none = Ending::none;
  if (!ending_.compare_exchange_strong(none, ending)) return;
  last_words_deadline_.store(Clock::now() + last_words_time);
  ended_.store(true);
}

void ConnectionThreads::enqueue(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    if (jobs_.size() > idle_ && threads_ < max_) start_thread();
  }
  changed_.notify_one();
}

// If the system cannot create a thread, the job waits for a busy one.
void ConnectionThreads::start_thread() {
  try {
    std::thread([this] { work(); }).detach();
    ++threads_;
  } catch (const std::system_error&) {
  }
}

void ConnectionThreads::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait_for(lock, idle_time, [&] { return closing_ || !jobs_.empty(); });
    --idle_;
    if (jobs_.empty()) break;
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
  }
  --threads_;
  ended_.notify_all();  // under the lock: shutdown() may destroy the condition once it has it
}

void ConnectionThreads::shutdown() {
  std::unique_lock lock(mutex_);
  closing_ = true;
  changed_.notify_all();
  ended_.wait(lock, [&] { return threads_ == 0; });
}

std::size_t ConnectionThreads::threads() const {
  const std::lock_guard lock(mutex_);
  return threads_;
}

}  // namespace heed::server
