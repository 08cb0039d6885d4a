// Any bytes through the request parser and the gate, without sockets: a request or a refusal with a
// status, the same however the bytes are cut into pieces, and never a body beyond the limit.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "server/gate.h"
#include "server/http_parser.h"

namespace heed::server {
namespace {

using Phase = RequestParser::Phase;

constexpr std::int64_t max_body_bytes = 1 << 10;

struct Outcome {
  int status = 0;  // of the refusal; 0: accepted, or unfinished
  Phase phase = Phase::header;
  std::string method;
  std::string target;
  HeaderFields fields;
  std::string body;
  std::size_t consumed = 0;  // where it was not refused

  bool operator==(const Outcome&) const = default;
};

void check_refusal(const Reply& refusal) {
  if (refusal.status < 400 || refusal.status > 505 || refusal.status == 500) std::abort();
  const Json error = parse_json(refusal.body, "reply")["error"];
  if (error["type"].get<std::string>().empty()) std::abort();
  if (error["message"].get<std::string>().empty()) std::abort();
}

// What a server does with bytes that arrive in pieces of this size.
class Reader {
 public:
  Outcome read(std::string_view bytes, std::size_t piece) {
    try {
      for (std::size_t begin = 0; begin < bytes.size() && outcome_.status == 0; begin += piece) {
        unread_ += bytes.substr(begin, piece);
        parse();
      }
      if (outcome_.status == 0 && parser_.phase() == Phase::complete) {
        outcome_.body = parser_.take_body();
      }
    } catch (const HttpError& error) {
      outcome_.status = error.status();
      check_refusal(reply_to_exception());
    }
    outcome_.phase = parser_.phase();
    if (outcome_.status != 0) outcome_.consumed = 0;  // how far it came is of no matter
    return outcome_;
  }

 private:
  void parse() {
    while (const std::size_t consumed = parser_.put(unread_)) {
      if (consumed > unread_.size()) std::abort();
      unread_.erase(0, consumed);
      outcome_.consumed += consumed;
      if (!has_header_ && parser_.phase() != Phase::header) pass_gate();
      if (outcome_.status != 0) return;
    }
  }

  void pass_gate() {
    has_header_ = true;
    const RequestHeader& header = parser_.header();
    outcome_.method = header.method;
    outcome_.target = header.target;
    outcome_.fields = header.fields;
    Request request;
    try {
      request = parse_request(header.method, header.target);
    } catch (const Error&) {
      check_refusal(reply_to_exception());
      outcome_.status = 400;
      return;
    }
    request.headers = header.fields;
    if (const auto refusal = gate_.check(request)) {
      outcome_.status = refusal->status;
      if (refusal->status != 204) check_refusal(*refusal);
      return;
    }
    if (parser_.phase() == Phase::body) {
      parser_.limit_body(static_cast<std::uint64_t>(max_body_bytes));
    }
  }

  const Gate gate_{GateOptions{.api_key = "key",
                               .allowed_origins = {"http://a"},
                               .allowed_hosts = {"box"},
                               .max_body_bytes = max_body_bytes}};
  RequestParser parser_;
  std::string unread_;
  bool has_header_ = false;
  Outcome outcome_;
};

}  // namespace
}  // namespace heed::server

// The first byte chooses what stands in front of the input, so that headers and chunks are reached.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace heed::server;
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string start = "POST /a?b=c HTTP/1.1\r\nHost: box\r\nX-Api-Key: key\r\n";
  if (data[0] % 4 == 1) bytes = start + bytes;
  if (data[0] % 4 == 2) bytes = start + "Transfer-Encoding: chunked\r\n\r\n" + bytes;
  const Outcome whole = Reader().read(bytes, bytes.size() + 1);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}}) {
    if (!(Reader().read(bytes, piece) == whole)) std::abort();
  }
  if (whole.body.size() > static_cast<std::size_t>(max_body_bytes)) std::abort();
  return 0;
}
