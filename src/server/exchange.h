// A request and its reply, free of any HTTP library: what handlers are written against.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/progress.h"

namespace heed::server {

// A refusal with a status that no ErrorCode stands for, such as 413; others throw heed::Error.
class HttpError : public std::runtime_error {
 public:
  HttpError(int status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

struct Request {
  std::string method;                          // "GET", …; a HEAD is handled as a GET
  std::string path;                            // as it was sent, without the query
  std::vector<std::string> segments;           // of the path, decoded: /a/b%20c is {"a", "b c"}
  std::map<std::string, std::string> query;    // decoded
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  std::map<std::string, std::string> captured;  // what {name} in the route's pattern stands for
  // True once the reply is not needed: the client disconnected, time is up or the server stops.
  StopFlag stop = nullptr;

  std::string header(const std::string& name) const;  // empty when absent

  // What {name} stands for, as text or as a number from 0 on. Throws Error{invalid_argument}.
  const std::string& in_path(const std::string& name) const;
  std::int64_t integer_in_path(const std::string& name) const;

  // A parameter of the query. Those that read numbers throw Error{invalid_argument} for anything
  // else, NaN and infinities included.
  std::optional<std::string> parameter(const std::string& name) const;
  std::int64_t integer(const std::string& name, std::int64_t fallback) const;
  double number(const std::string& name, double fallback) const;

  // The body as a JSON object; an empty body is an empty one. Throws Error{invalid_argument}.
  Json json() const;
};

// Fills in method, path, segments and query. Throws Error{invalid_argument} for a target that is no
// absolute path: bad percent-encoding, control characters, "." and ".." as segments, a parameter
// that is given twice.
Request parse_request(std::string method, std::string_view target);

// Where a streamed body goes; each call is sent at once.
class StreamWriter {
 public:
  virtual ~StreamWriter() = default;
  // False once the client is gone: there is no point in going on.
  virtual bool write(std::string_view bytes) = 0;
};

struct Reply {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // Called once in the place of `body`, on the thread of the connection. Throwing cuts it short.
  std::function<void(StreamWriter&)> stream;
};

Reply json_reply(const OrderedJson& json);
Reply text_reply(std::string text, std::string content_type);

// OpenAI's error object: {"error": {"message", "type", "param", "code"}}. `param` is the path to
// the field at fault and `code` a string; null where there is none.
struct ErrorDetails {
  std::string message;
  std::string param{};  // empty: null
  std::string code{};   // empty: the status's
};
Reply error_reply(int status, const std::string& message);
Reply error_reply(int status, const ErrorDetails& details);

// The reply to whatever a handler threw; to be called where it is caught.
Reply reply_to_exception();

// A number that was computed in f32, with the 9 digits that tell it from all others; null for NaN
// and infinities.
OrderedJson json_float(float value);

// `event: NAME\ndata: JSON\n\n`; without a name only the data.
std::string server_sent_event(const OrderedJson& data, const std::string& name = "");

}  // namespace heed::server
