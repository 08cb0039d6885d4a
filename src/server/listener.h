// The socket that clients connect to.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace heed::server {

class Listener {
 public:
  // Listens on `port`, or where it is in use on one of `next_ports` after it; 0 is any free one.
  // Throws Error{input_output} where none can be had.
  Listener(const std::string& host, int port, int next_ports);
  ~Listener() { close(); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int port() const { return port_; }

  // The non-blocking socket of a client that connected; none where there is none for so long.
  std::optional<int> accept(std::chrono::milliseconds time);

  // Clients are refused from here on.
  void close();

 private:
  int socket_ = -1;
  int port_ = 0;
};

}  // namespace heed::server
