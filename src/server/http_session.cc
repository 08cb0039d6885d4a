#include "server/http_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "base/text.h"
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
    write_stream(reply, writer);
  } catch (...) {
    return false;  // cuts the reply short, and the connection with it
  }
  return writer.finish();
}

using Phase = RequestParser::Phase;

constexpr int max_requests_per_connection = 1000;

// A request from the end of its header section to the end of its reply.
class Processing {
 public:
  explicit Processing(Traffic& traffic) : traffic_(traffic) {
    traffic_.processing.fetch_add(1);
    traffic_.changes.fetch_add(1);
  }
  ~Processing() {
    traffic_.processing.fetch_sub(1);
    traffic_.changes.fetch_add(1);
  }
  Processing(const Processing&) = delete;
  Processing& operator=(const Processing&) = delete;

 private:
  Traffic& traffic_;
};

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

void HttpSession::run() {
  for (int left = max_requests_per_connection; left > 0; --left) {
    // Some clients send an empty line after a request.
    while (connection_.unread().starts_with("\r\n")) connection_.consume(2);
    const auto deadline = Connection::after(services_.options.idle_time);
    if (connection_.unread().empty() &&
        connection_.receive(deadline) != Connection::Input::received) {
      return;
    }
    if (!serve_request(left)) return;
  }
}

void HttpSession::refuse() {
  send_reply(connection_, error_reply(503, "the server has too many connections"), {});
}

bool HttpSession::serve_request(int left) {
  RequestParser parser;
  std::optional<Processing> processing;
  Reply reply;
  try {
    receive(parser, Phase::body, services_.options.header_time);
    processing.emplace(services_.traffic);
    reply = answer(parser);
  } catch (...) {
    reply = reply_to_exception();
  }
  Request asked;
  asked.headers = parser.header().fields;
  services_.gate.add_headers(asked, reply);
  // The end of a request that was rejected early is unknown, so the connection is closed.
  const bool is_received = parser.phase() == Phase::complete;
  const ReplyFraming framing{
      .has_no_body = parser.header().method == "HEAD",
      .is_http_1_0 = parser.header().is_http_1_0,
      .keeps_alive =
          is_received && left > 1 && parser.header().keeps_alive && !connection_.server_stops(),
      .idle_time = services_.options.idle_time,
  };
  const bool goes_on = send_reply(connection_, reply, framing);
  connection_.end_reply();
  if (!is_received || (!goes_on && !connection_.unread().empty())) connection_.linger();
  return goes_on && connection_.ending() == Ending::none;
}

void HttpSession::receive(RequestParser& parser, Phase until, HttpOptions::Seconds time) {
  const auto deadline = Connection::after(time);
  const char* part = parser.phase() == Phase::header ? "request header" : "request body";
  while (true) {
    while (const std::size_t consumed = parser.put(connection_.unread())) {
      connection_.consume(consumed);
      if (parser.phase() >= until) return;
    }
    switch (connection_.receive(deadline)) {
      case Connection::Input::received: break;
      case Connection::Input::closed:
        throw HttpError(400, fmt::format("the connection ended within the {}", part));
      case Connection::Input::out_of_time:
        throw HttpError(408, fmt::format("the {} did not arrive within {} s", part, time.count()));
      case Connection::Input::server_stops: throw HttpError(503, "the server is stopping");
    }
  }
}

Reply HttpSession::answer(RequestParser& parser) {
  Request request = to_request(parser.header());
  if (std::optional<Reply> refusal = services_.gate.check(request)) return std::move(*refusal);
  receive_body(parser);
  request.body = parser.take_body();
  connection_.begin_reply();
  Reply reply = services_.router.handle(std::move(request));
  if (connection_.ending() == Ending::out_of_time && reply.status == 503) {
    return error_reply(408, fmt::format("the reply took longer than {} s",
                                        services_.options.request_time.count()));
  }
  return reply;
}

Request HttpSession::to_request(const RequestHeader& header) const {
  Request request;
  if (header.method == "OPTIONS" && header.target == "*") {  // of the server as a whole
    request.method = header.method;
    request.path = header.target;
  } else {
    request = parse_request(header.method, header.target);
  }
  request.headers = header.fields;
  request.stop = connection_.stop_flag();
  return request;
}

void HttpSession::receive_body(RequestParser& parser) {
  const RequestHeader& header = parser.header();
  const auto expected = header.fields.find("expect");
  const bool expects = !header.is_http_1_0 && expected != header.fields.end();
  if (expects && ascii_lower(expected->second) != "100-continue") {
    throw HttpError(417, "the only supported expectation is 100-continue");
  }
  if (parser.phase() == Phase::complete) return;
  parser.limit_body(static_cast<std::uint64_t>(services_.gate.options().max_body_bytes));
  if (expects) connection_.send("HTTP/1.1 100 Continue\r\n\r\n");
  receive(parser, Phase::complete, services_.options.body_time);
}

}  // namespace heed::server
