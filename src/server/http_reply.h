// Writes a reply's bytes: its status line and headers, and its body in one piece or in chunks.
#pragma once

#include <string>
#include <string_view>

#include "server/connection.h"
#include "server/exchange.h"

namespace heed::server {

struct ReplyFraming {
  bool has_no_body = false;          // to a HEAD request: the headers alone
  bool is_http_1_0 = false;          // no chunks: a streamed body ends with the connection
  bool keeps_alive = false;          // the connection goes on behind the reply
  HttpOptions::Seconds idle_time{};  // as long as it then waits for a request, which is announced
};

// The status line and headers with the empty line behind them.
std::string reply_header(const Reply& reply, const ReplyFraming& framing);

// Whether the connection can go on: all was sent and its end is known to the client.
bool send_reply(Connection& connection, const Reply& reply, ReplyFraming framing);

}  // namespace heed::server
