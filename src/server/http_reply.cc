#include "server/http_reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "server/http_parser.h"

namespace heed::server {
namespace {

// Sent together with the headers; a larger one is not copied for that.
constexpr std::size_t small_body = 64 << 10;

bool status_has_body(int status) { return status != 204 && status != 304; }

// A line break in a value would inject another header.
std::string one_line(std::string value) {
  std::ranges::replace_if(
      value, [](unsigned char c) { return c < ' ' || c == 0x7F; }, ' ');
  return value;
}

class BodyWriter : public StreamWriter {
 public:
  BodyWriter(Connection& connection, bool chunked) : connection_(connection), chunked_(chunked) {}

  bool write(std::string_view bytes) override {
    if (bytes.empty()) return sent_;  // an empty chunk would end the body
    sent_ =
        sent_ && (chunked_ ? connection_.send(fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes))
                           : connection_.send(bytes));
    return sent_;
  }

  bool finish() { return sent_ && (!chunked_ || connection_.send("0\r\n\r\n")); }

 private:
  Connection& connection_;
  const bool chunked_;
  bool sent_ = true;
};

bool send_stream(Connection& connection, const Reply& reply, bool chunked) {
  BodyWriter writer(connection, chunked);
  try {
    reply.stream(writer);
  } catch (...) {
    return false;  // cuts the reply short, and the connection with it
  }
  return writer.finish();
}

}  // namespace

std::string reply_header(const Reply& reply, const ReplyFraming& framing) {
  std::string text = fmt::format("HTTP/1.1 {} {}\r\n", reply.status, reason_phrase(reply.status));
  const auto add = [&](std::string_view name, const std::string& value) {
    fmt::format_to(std::back_inserter(text), "{}: {}\r\n", name, one_line(value));
  };
  for (const auto& [name, value] : reply.headers) add(name, value);
  if (status_has_body(reply.status)) {
    add("Content-Type", reply.content_type);
    if (!reply.stream) {
      add("Content-Length", std::to_string(reply.body.size()));
    } else if (!framing.is_http_1_0) {
      add("Transfer-Encoding", "chunked");
    }
  }
  if (!framing.keeps_alive) {
    add("Connection", "close");
  } else {
    if (framing.is_http_1_0) add("Connection", "keep-alive");
    // Clients that send a request at the moment when the connection ends lose it.
    add("Keep-Alive", fmt::format("timeout={:.0f}", std::floor(framing.idle_time.count())));
  }
  return text + "\r\n";
}

bool send_reply(Connection& connection, const Reply& reply, ReplyFraming framing) {
  const bool streams = reply.stream && status_has_body(reply.status);
  if (streams && framing.is_http_1_0) framing.keeps_alive = false;
  std::string header = reply_header(reply, framing);
  if (framing.has_no_body || !status_has_body(reply.status)) {
    return connection.send(header) && framing.keeps_alive;
  }
  bool sent = false;
  if (streams) {
    sent = connection.send(header) && send_stream(connection, reply, !framing.is_http_1_0);
  } else if (reply.body.size() <= small_body) {
    sent = connection.send(header.append(reply.body));
  } else {
    sent = connection.send(header) && connection.send(reply.body);
  }
  return sent && framing.keeps_alive;
}

}  // namespace heed::server
