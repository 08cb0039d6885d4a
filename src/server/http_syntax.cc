#include "server/http_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "server/exchange.h"

namespace heed::server {
namespace {

// Quotes bytes of a client in an error message.
std::string quotable(std::string_view text) {
  std::string copy(text.substr(0, 40));
  std::ranges::replace_if(
      copy, [](unsigned char c) { return c < ' ' || c >= 0x7F; }, '?');
  return copy;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_character);
}

bool is_method(std::string_view text) {
  constexpr std::array<std::string_view, 9> methods{"GET",    "HEAD",    "POST",  "PUT",    "PATCH",
                                                    "DELETE", "OPTIONS", "TRACE", "CONNECT"};
  return std::ranges::find(methods, text) != methods.end();
}

void check_version(std::string_view version) {
  const bool has_form = version.size() == 8 && version.starts_with("HTTP/") &&
                        is_digit(version[5]) && version[6] == '.' && is_digit(version[7]);
  if (!has_form) {
    throw HttpError(400, "the request line must be METHOD TARGET HTTP/1.1");
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    throw HttpError(505, fmt::format("{} is not supported: use HTTP/1.1", version));
  }
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return result;
}

bool is_token_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}

void check_request_line(std::string_view line) {
  const std::size_t first_space = line.find(' ');
  const std::size_t last_space = line.rfind(' ');
  if (first_space == std::string_view::npos || first_space == last_space) {
    throw HttpError(400, "the request line must be METHOD TARGET HTTP/1.1");
  }
  const std::string_view method = line.substr(0, first_space);
  const std::string_view target = line.substr(first_space + 1, last_space - first_space - 1);
  check_version(line.substr(last_space + 1));
  if (!is_method(method)) {
    throw HttpError(400, fmt::format("'{}' is not an HTTP method", quotable(method)));
  }
  if (target.size() > longest_target) {
    throw HttpError(414, fmt::format("the address has {} characters; at most {} are accepted",
                                     target.size(), longest_target));
  }
  const auto is_outside = [](char c) { return c == ' ' || is_control(c); };
  if (target.empty() || std::ranges::any_of(target, is_outside)) {
    throw HttpError(400, "the address holds a space or a control character");
  }
}

void check_field_line(std::string_view line) {
  if (line.starts_with(' ') || line.starts_with('\t')) {
    throw HttpError(400, "a header is folded over several lines; write it on one");
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) {
    throw HttpError(400, fmt::format("the header line '{}' has no colon", quotable(line)));
  }
  const std::string_view name = line.substr(0, colon);
  if (!is_token(name)) {
    throw HttpError(400, fmt::format("'{}' is not a header name", quotable(name)));
  }
  const auto is_outside = [](char c) { return c != '\t' && is_control(c); };
  if (std::ranges::any_of(line.substr(colon + 1), is_outside)) {
    throw HttpError(400, fmt::format("the header {} holds a control character", name));
  }
}

BodyFraming body_framing(const HeaderFields& fields) {
  const auto length = fields.find("content-length");
  const auto coding = fields.find("transfer-encoding");
  if (coding != fields.end()) {
    if (length != fields.end()) {
      throw HttpError(400, "a request has a Content-Length or a Transfer-Encoding, not both");
    }
    if (lower_case(coding->second) != "chunked") {
      throw HttpError(400, fmt::format("the Transfer-Encoding must be chunked, not '{}'",
                                       quotable(coding->second)));
    }
    return {.chunked = true};
  }
  if (length == fields.end()) return {};
  const std::string& digits = length->second;
  if (digits.empty() || !std::ranges::all_of(digits, is_digit)) {
    throw HttpError(
        400, fmt::format("the Content-Length must be one number, not '{}'", quotable(digits)));
  }
  std::uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
  if (error != std::errc{}) bytes = std::numeric_limits<std::uint64_t>::max();
  return {.length = bytes};
}

}  // namespace heed::server
