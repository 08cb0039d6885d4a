// One client's socket: what it sends is read within limits of bytes and time, and it is seen to
// leave while its request is still being answered.
#pragma once

#include <httplib.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>

#include "server/http_server.h"

namespace heed::server {

enum class Ending { none, client_left, out_of_time, server_stops };

class Connection : public httplib::Stream {
 public:
  using Clock = std::chrono::steady_clock;

  Connection(int socket, const HttpOptions& options) : socket_(socket), options_(options) {}

  // Waits for the first byte of a request; false when none comes or `closing` is set.
  bool wait_for_request(const std::atomic<bool>& closing);
  void begin_head();
  void begin_body();
  void begin_reply();  // until end_reply() it may be ended from another thread
  void end_reply() { replying_.store(false); }

  // Ends the request for a reason, if it is being answered; from any thread.
  void end(Ending ending);
  // Ends it if its client has left or its time is up. From one other thread.
  void watch();

  Ending ending() const { return ending_.load(); }
  StopFlag stop_flag() const { return &ended_; }
  bool timed_out() const { return timed_out_; }  // while reading
  bool head_too_large() const { return head_too_large_; }
  bool has_begun() const { return read_in_head_ > 0; }

  // Writes bytes past the HTTP library.
  bool write_all(std::string_view bytes);
  // Lets the client read the last reply before the connection breaks over what it still sends.
  void linger();

  bool is_readable() const override { return true; }
  bool is_writable() const override { return !ended_.load(); }
  ssize_t read(char* bytes, std::size_t size) override;
  ssize_t write(const char* bytes, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  bool wait(short event, Clock::time_point deadline, const std::atomic<bool>* closing) const;

  int socket_;
  const HttpOptions& options_;
  std::array<char, 16384> buffer_{};
  std::size_t begin_ = 0;  // buffer_[begin_, end_) has been received and not read
  std::size_t end_ = 0;
  bool in_head_ = true;
  std::size_t read_in_head_ = 0;
  bool timed_out_ = false;
  bool head_too_large_ = false;
  Clock::time_point deadline_{};
  std::atomic<Clock::time_point> reply_deadline_{};
  std::atomic<bool> replying_{false};
  std::atomic<bool> ended_{false};
  std::atomic<Ending> ending_{Ending::none};
};

}  // namespace heed::server
