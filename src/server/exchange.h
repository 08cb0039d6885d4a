// A request and its reply, independent of any HTTP library; the interface of handlers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/progress.h"

namespace heed::server {

// An error with a status that has no ErrorCode, such as 413; other errors are heed::Error.
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
  std::vector<std::string> segments;           // of the path, decoded: /a/b%2Fc is {"a", "b/c"}
  std::map<std::string, std::string> query;    // decoded
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  std::map<std::string, std::string> captured;  // what {name} in the route's pattern stands for
  // True once the reply is no longer needed: the client disconnected, the request timed out or the
  // server is stopping.
  StopFlag stop = nullptr;

  std::string header(const std::string& name) const;  // empty when absent

  // The value of {name} in the path, as text or as a number of at least 0. Throws
  // Error{invalid_argument}.
  const std::string& in_path(const std::string& name) const;
  std::int64_t integer_in_path(const std::string& name) const;

  // A parameter of the query. Getters of numbers throw Error{invalid_argument} for anything else,
  // including NaN and infinities.
  std::optional<std::string> parameter(const std::string& name) const;
  std::int64_t integer(const std::string& name, std::int64_t fallback) const;
  double number(const std::string& name, double fallback) const;

  // The body as a JSON object; an empty body is an empty one. Throws Error{invalid_argument}.
  Json json() const;
};

// Fills in method, path, segments and query. Throws Error{invalid_argument} for a target that is
// not an absolute path: invalid percent-encoding, control characters, "." and ".." as segments, a
// parameter that is given twice.
Request parse_request(std::string method, std::string_view target);

// The sink of a streamed body; each call is sent immediately.
class StreamWriter {
 public:
  virtual ~StreamWriter() = default;
  // Returns false once the client disconnected; the handler should stop.
  virtual bool write(std::string_view bytes) = 0;
  // The next piece is not wanted for this time.
  virtual void wait(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }
};

struct Reply {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // Called instead of sending `body`, on the thread of the connection: writes the next piece, and
  // returns whether another follows. An exception ends the reply.
  std::function<bool(StreamWriter&)> stream;
};

// Writes all pieces of a streamed body.
void write_stream(const Reply& reply, StreamWriter& writer);

Reply json_reply(const OrderedJson& json);
Reply text_reply(std::string text, std::string content_type);

// OpenAI's error object: {"error": {"message", "type", "param", "code"}}. `param` is the path of
// the invalid field and `code` a string; null if there is none.
struct ErrorDetails {
  std::string message;
  std::string param{};  // empty: null
  std::string code{};   // empty: the status's
};
Reply error_reply(int status, const std::string& message);
Reply error_reply(int status, const ErrorDetails& details);

// Returns the reply for the current exception of a handler; call it in the catch block.
Reply reply_to_exception();

// `event: NAME\ndata: JSON\n\n`; without a name only the data.
std::string server_sent_event(const OrderedJson& data, const std::string& name = "");

}  // namespace heed::server
