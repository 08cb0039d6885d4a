// Turns the bytes of one HTTP/1.x request into its header section and body, strictly according to
// RFC 9112: other parsers, such as Boost.Beast's, accept forms that could be interpreted
// differently (request smuggling).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace heed::server {

inline constexpr std::size_t max_target = 2048;
inline constexpr std::size_t max_request_line = max_target + 32;

bool is_token_character(char c);

// `line` is one line without its CR LF. They throw HttpError 400, for a target that is too long 414
// and for another version of HTTP than 1.0 and 1.1 505.
void check_request_line(std::string_view line);
void check_field_line(std::string_view line);

// Names in lower case; values of a repeated name joined by ", ".
using HeaderFields = std::map<std::string, std::string>;

// How the length of a request's body is determined.
struct BodyFraming {
  bool chunked = false;
  std::uint64_t length = 0;  // where it is not chunked

  bool has_body() const { return chunked || length > 0; }
};

// Throws HttpError 400 if Content-Length and Transfer-Encoding are ambiguous.
BodyFraming body_framing(const HeaderFields& fields);

struct RequestHeader {
  std::string method;
  std::string target;  // of an absolute address only what follows the host; "*" stays
  HeaderFields fields;
  BodyFraming framing;
  bool is_http_1_0 = false;
  bool keeps_alive = false;  // what the client asks for, or its version's default
};

class RequestParser {
 public:
  enum class Phase { header, body, complete };

  RequestParser();
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  // Parses `bytes`, which begin where the last call's consumed ones ended, and returns how many it
  // consumed: never any after the header section in the call that completes it, nor after the
  // request. What is not consumed must come again with more bytes after it. Throws HttpError for
  // what is no request; then nothing after it can be read as one.
  std::size_t put(std::string_view bytes);

  Phase phase() const { return phase_; }
  const RequestHeader& header() const { return header_; }  // from Phase::body on

  // Chunked bodies beyond it are refused with 413. To be called once, in Phase::body.
  void limit_body(std::uint64_t bytes);
  std::string take_body();

 private:
  class Implementation;

  std::size_t put_header(std::string_view bytes);
  std::size_t put_body(std::string_view bytes);
  void check_line(std::string_view line);
  void check_start(std::string_view line) const;
  void finish_header(std::string_view bytes);

  std::unique_ptr<Implementation> implementation_;
  Phase phase_ = Phase::header;
  RequestHeader header_;
  std::size_t line_begin_ = 0;  // lines in front of it were checked
  std::size_t searched_ = 0;    // no line ends in front of it
  int lines_ = 0;
};

// "Not Found" for 404.
std::string reason_phrase(int status);

}  // namespace heed::server
