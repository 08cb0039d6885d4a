// The grammar of HTTP/1.1 header sections (RFC 9112), line by line: stricter than Boost.Beast's
// parser, which accepts some forms that other parsers interpret differently.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace heed::server {

inline constexpr std::size_t longest_target = 2048;
inline constexpr std::size_t longest_request_line = longest_target + 32;

// ASCII only.
std::string lower_case(std::string_view text);

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

}  // namespace heed::server
