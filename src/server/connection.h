// A client's socket, with time limits for receiving, and detection of disconnection while a request
// is being answered; and a pool of threads for connections, which grows with the open connections
// up to a limit. An idle thread ends after a while, which releases its stack and its malloc cache.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "server/http_server.h"

namespace heed::server {

// Why a reply was cut short.
enum class Ending { none, client_left, out_of_time, server_stops };

class Connection {
 public:
  using Clock = std::chrono::steady_clock;
  static Clock::time_point after(HttpOptions::Seconds time);

  enum class Input { received, closed, out_of_time, server_stops };

  // Owns the socket, which must not block. Borrows the rest; once `stopping` is set nothing more is
  // received.
  Connection(int socket, const HttpOptions& options, const std::atomic<bool>& stopping);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Bytes that were received and not yet consumed.
  std::string_view unread() const { return unread_; }
  void consume(std::size_t bytes) { unread_.erase(0, bytes); }
  // Waits for more bytes.
  Input receive(Clock::time_point deadline);

  // Sends all bytes; returns false if the client disconnected or read nothing for the write
  // timeout, or shortly after end().
  bool send(std::string_view bytes);
  // Lets the client read the last reply before unread input resets the connection.
  void linger();

  // While a reply is computed and sent, watch() detects events that end it.
  void begin_reply();
  void end_reply() { replying_.store(false); }

  // May be called from one other thread. end() is final: it sets the stop flag, ends waiting, and
  // leaves only a short time to send the rest.
  void watch();
  void end(Ending ending);

  bool server_stops() const { return stopping_.load(); }
  Ending ending() const { return ending_.load(); }
  StopFlag stop_flag() const { return &ended_; }

 private:
  bool wait(short event, Clock::time_point deadline, const std::atomic<bool>* stopping) const;

  const int socket_;
  const HttpOptions& options_;
  const std::atomic<bool>& stopping_;
  std::string unread_;
  std::atomic<bool> replying_{false};
  std::atomic<Clock::time_point> reply_deadline_{};
  std::atomic<Clock::time_point> last_words_deadline_{};
  std::atomic<Ending> ending_{Ending::none};
  std::atomic<bool> ended_{false};  // set after the two above
};

class ConnectionThreads {
 public:
  static constexpr std::chrono::milliseconds idle_time{500};

  explicit ConnectionThreads(std::size_t max) : max_(max) {}
  ConnectionThreads(const ConnectionThreads&) = delete;
  ConnectionThreads& operator=(const ConnectionThreads&) = delete;

  // Jobs beyond the bound wait for a thread.
  void enqueue(std::function<void()> job);

  // Finishes all jobs in the queue and joins the threads. Must be called before destruction.
  void shutdown();

  std::size_t threads() const;

 private:
  void start_thread();
  void work();

  const std::size_t max_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable ended_;
  std::deque<std::function<void()>> jobs_;
  std::size_t threads_ = 0;
  std::size_t idle_ = 0;  // of them
  bool closing_ = false;
};

}  // namespace heed::server
