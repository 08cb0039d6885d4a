#include "server/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace heed::server {
namespace {

constexpr std::size_t most_head_bytes = 64 << 10;
// How often a wait looks whether it is still wanted.
constexpr std::chrono::milliseconds slice{50};

Connection::Clock::duration clock_time(HttpOptions::Seconds seconds) {
  return std::chrono::duration_cast<Connection::Clock::duration>(seconds);
}

}  // namespace

bool Connection::wait(short event, Clock::time_point deadline,
                      const std::atomic<bool>* closing) const {
  while (true) {
    if (ended_.load() || (closing != nullptr && closing->load())) return false;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd polled{.fd = socket_, .events = event, .revents = 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(std::min(left, slice).count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool Connection::wait_for_request(const std::atomic<bool>& closing) {
  if (begin_ < end_) return true;
  return wait(POLLIN, Clock::now() + clock_time(options_.idle_time), &closing);
}

void Connection::begin_head() {
  in_head_ = true;
  read_in_head_ = 0;
  ended_.store(false);
  ending_.store(Ending::none);
  deadline_ = Clock::now() + clock_time(options_.head_time);
}

void Connection::begin_body() {
  in_head_ = false;
  deadline_ = Clock::now() + clock_time(options_.body_time);
}

void Connection::begin_reply() {
  reply_deadline_.store(Clock::now() + clock_time(options_.request_time));
  replying_.store(true);
}

void Connection::end(Ending ending) {
  Ending none = Ending::none;
  if (!replying_.load() || !ending_.compare_exchange_strong(none, ending)) return;
  ended_.store(true);
}

void Connection::watch() {
  if (!replying_.load() || ended_.load()) return;
  if (Clock::now() > reply_deadline_.load()) return end(Ending::out_of_time);
  // Bytes that are sent ahead do not matter here, an end of the stream does.
  pollfd polled{.fd = socket_, .events = POLLRDHUP, .revents = 0};
  if (::poll(&polled, 1, 0) > 0 && (polled.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
    end(Ending::client_left);
  }
}

ssize_t Connection::read(char* bytes, std::size_t size) {
  if (begin_ == end_) {
    if (!wait(POLLIN, deadline_, nullptr)) {
      timed_out_ = true;
      return -1;
    }
    const ssize_t received = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (received <= 0) return received;
    begin_ = 0;
    end_ = static_cast<std::size_t>(received);
  }
  const std::size_t count = std::min(size, end_ - begin_);
  if (in_head_) {
    read_in_head_ += count;
    if (read_in_head_ > most_head_bytes) {
      head_too_large_ = true;
      return -1;
    }
  }
  std::memcpy(bytes, buffer_.data() + begin_, count);
  begin_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* bytes, std::size_t size) {
  while (true) {
    if (ending_.load() == Ending::client_left) return -1;
    const ssize_t sent = ::send(socket_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) return sent;
    if (sent < 0 && errno == EINTR) continue;
    const bool full = sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (!full || !wait(POLLOUT, Clock::now() + clock_time(options_.write_time), nullptr)) {
      end(Ending::client_left);
      return -1;
    }
  }
}

bool Connection::write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = write(bytes.data(), bytes.size());
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void Connection::linger() {
  ::shutdown(socket_, SHUT_WR);
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(1);
  std::size_t drained = 0;
  while (drained < (64U << 20) && wait(POLLIN, deadline, nullptr)) {
    const ssize_t received = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (received <= 0) return;
    drained += static_cast<std::size_t>(received);
  }
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

}  // namespace heed::server
