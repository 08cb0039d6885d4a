// An HTTP server with one thread per connection and limits for connections, bytes and time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "server/gate.h"
#include "server/router.h"

namespace heed::server {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8080;                     // 0: any that is free
  int next_ports = 0;                  // number of ports after it to try if it is in use
  std::int64_t max_connections = 160;  // more are told 503
  using Seconds = std::chrono::duration<double>;
  Seconds header_time{10};    // for a request's header to arrive
  Seconds body_time{60};      // for its body to arrive
  Seconds idle_time{5};       // between two requests on one connection
  Seconds write_time{30};     // a client that reads nothing for so long is gone
  Seconds request_time{600};  // for a reply, streamed ones included
  Seconds grace_time{5};      // for replies under way when the server stops
};

class HttpServer {
 public:
  // Listens from here on; clients that connect wait until run(). Borrows router and gate. Throws
  // Error{input_output} if it cannot listen on host and port.
  HttpServer(const Router& router, const Gate& gate, const HttpOptions& options);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;

  // Serves until `stop` is set. Then it receives nothing more: connections that are idle or still
  // sending a request are closed immediately. Replies in progress may finish within the grace time;
  // then the stop flags of their requests are set.
  void run(StopFlag stop);

  std::int64_t connections() const;          // open ones
  std::int64_t requests_processing() const;  // requests that are being answered

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace heed::server
