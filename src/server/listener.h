// The socket that clients connect to.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace heed::server {

class Listener {
 public:
  // Listens on `port`, or if it is in use on one of the `next_ports` ports after it; 0 chooses a
  // free port. Throws Error{input_output} if none is available.
  Listener(const std::string& host, int port, int next_ports);
  ~Listener() { close(); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int port() const { return port_; }

  // Returns the non-blocking socket of a client that connected, or nothing after a timeout.
  std::optional<int> accept(std::chrono::milliseconds time);

  // Rejects clients from now on.
  void close();

 private:
  int socket_ = -1;
  int port_ = 0;
};

}  // namespace heed::server
