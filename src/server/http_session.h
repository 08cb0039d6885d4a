// Serves the requests that come on one connection, one after another: each reply in one piece or in
// chunks.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/connection.h"
#include "server/exchange.h"
#include "server/gate.h"
#include "server/http_parser.h"
#include "server/router.h"

namespace heed::server {

struct ReplyFraming {
  bool has_no_body = false;          // to a HEAD request: the headers alone
  bool is_http_1_0 = false;          // no chunks: a streamed body ends with the connection
  bool keeps_alive = false;          // the connection goes on after the reply
  HttpOptions::Seconds idle_time{};  // as long as it then waits for a request, which is announced
};

// The status line and headers with the empty line after them.
std::string reply_header(const Reply& reply, const ReplyFraming& framing);

// Whether the connection can go on: all was sent and its end is known to the client.
bool send_reply(Connection& connection, const Reply& reply, ReplyFraming framing);

// Counters of a server: open connections and requests in progress.
struct Traffic {
  std::atomic<std::int64_t> open{0};        // connections
  std::atomic<std::int64_t> processing{0};  // requests that are being answered
  std::atomic<std::int64_t> changes{0};     // beginnings and ends of the two
};

struct HttpServices {
  const Router& router;
  const Gate& gate;
  const HttpOptions& options;
  Traffic& traffic;
};

class HttpSession {
 public:
  HttpSession(Connection& connection, const HttpServices& services)
      : connection_(connection), services_(services) {}

  // Returns when the connection is to be closed.
  void run();
  // Rejects a connection beyond the limit.
  void refuse();

 private:
  // Whether another may follow on the connection.
  bool serve_request(int left);
  Reply answer(RequestParser& parser);
  // Throws HttpError if the bytes do not arrive in time.
  void receive(RequestParser& parser, RequestParser::Phase until, HttpOptions::Seconds time);
  void receive_body(RequestParser& parser);
  Request to_request(const RequestHeader& header) const;

  Connection& connection_;
  const HttpServices& services_;
};

}  // namespace heed::server
