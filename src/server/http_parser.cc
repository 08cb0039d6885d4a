#include "server/http_parser.h"

#include <fmt/format.h>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <limits>

#include "base/text.h"
#include "server/exchange.h"
#include "server/gate.h"

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

namespace http = boost::beast::http;

constexpr std::size_t max_header_bytes = 64 << 10;
constexpr int max_fields = 100;
// A chunk's size with its extensions, or the last one with the trailer section.
constexpr std::size_t max_chunk_header_bytes = 16 << 10;

template <class View>
std::string copy(const View& view) {
  return std::string(view.data(), view.size());
}

// Of "http://host:port/path" the host replaces the Host header (RFC 9112, 3.2.2).
void split_absolute_target(RequestHeader& header) {
  const std::string& target = header.target;
  const std::string start = ascii_lower(std::string_view(target).substr(0, 8));
  const std::size_t begin = start == "https://" ? 8 : start.starts_with("http://") ? 7 : 0;
  if (begin == 0) return;
  const std::size_t end = std::min(target.find_first_of("/?#", begin), target.size());
  header.fields["host"] = target.substr(begin, end - begin);
  std::string path = target.substr(end);
  header.target = path.starts_with('/') ? path : "/" + path;
}

void check_host(const RequestHeader& header) {
  const auto host = header.fields.find("host");
  if (host == header.fields.end()) throw HttpError(400, "the request has no Host header");
  if (!parse_authority(host->second)) {
    throw HttpError(400, "the Host header must be one host[:port]");
  }
}

}  // namespace

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
  if (target.size() > max_target) {
    throw HttpError(414, fmt::format("the address has {} characters; at most {} are accepted",
                                     target.size(), max_target));
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
    if (ascii_lower(coding->second) != "chunked") {
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

class RequestParser::Implementation {
 public:
  Implementation() {
    parser_.header_limit(std::numeric_limits<std::uint32_t>::max());
    parser_.body_limit(std::numeric_limits<std::uint64_t>::max());
    parser_.on_chunk_header(find_last_chunk_);
  }
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  // `bytes` are the whole header section.
  RequestHeader parse_header(std::string_view bytes) {
    boost::beast::error_code error;
    parser_.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
    if (error || !parser_.is_header_done()) {
      throw HttpError(400, fmt::format("the request header is malformed ({})", error.message()));
    }
    const auto& message = parser_.get();
    RequestHeader header;
    header.method = copy(message.method_string());
    header.target = copy(message.target());
    header.is_http_1_0 = message.version() == 10;
    header.keeps_alive = parser_.keep_alive();
    for (const auto& field : message) {
      const std::string value = copy(field.value());
      const auto [known, is_new] =
          header.fields.emplace(ascii_lower(copy(field.name_string())), value);
      if (!is_new) known->second += ", " + value;
    }
    parser_.eager(true);
    return header;
  }

  std::size_t parse_body(std::string_view bytes) {
    // A body that begins with its last chunk has five bytes or more; Beast asserts that they are
    // there.
    if (bytes.size() < 5 && !has_begun_body_ && parser_.chunked() && bytes.front() == '0') return 0;
    boost::beast::error_code error;
    const std::size_t consumed =
        parser_.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
    if (error == http::error::body_limit) {
      throw HttpError(413, fmt::format("the body may have {} bytes, not more", max_body_bytes_));
    }
    if (error && error != http::error::need_more) {
      throw HttpError(400, fmt::format("the chunked body is malformed ({})", error.message()));
    }
    if (!parser_.is_done() && bytes.size() - consumed > max_chunk_header_bytes) {
      throw HttpError(400, "a chunk's header or the trailer section is too long");
    }
    has_begun_body_ = has_begun_body_ || consumed > 0;
    if (parser_.is_done() && last_chunk_end_ != nullptr) {
      check_trailer({last_chunk_end_, bytes.data() + consumed});
    }
    return consumed;
  }

  void limit_body(std::uint64_t bytes) {
    max_body_bytes_ = bytes;
    parser_.body_limit(bytes);
  }

  bool is_done() const { return parser_.is_done(); }
  std::string take_body() { return std::move(parser_.get().body()); }

 private:
  // `section` goes from the end of the last chunk's line to that of the request, which come in one
  // call. Beast accepts folded lines in it.
  static void check_trailer(std::string_view section) {
    section.remove_prefix(section.find('\n') + 1);
    for (std::size_t end = section.find("\r\n"); end > 0; end = section.find("\r\n")) {
      if (end == std::string_view::npos) return;
      check_field_line(section.substr(0, end));
      section.remove_prefix(end + 2);
    }
  }

  http::request_parser<http::string_body> parser_;
  const char* last_chunk_end_ = nullptr;  // of its size and extensions, in the bytes of the call
  std::function<void(std::uint64_t, boost::beast::string_view, boost::beast::error_code&)>
      find_last_chunk_ = [this](std::uint64_t size, boost::beast::string_view extensions,
                                boost::beast::error_code&) {
        if (size == 0) last_chunk_end_ = extensions.data() + extensions.size();
      };
  std::uint64_t max_body_bytes_ = 0;
  bool has_begun_body_ = false;
};

RequestParser::RequestParser() : implementation_(std::make_unique<Implementation>()) {}
RequestParser::~RequestParser() = default;

std::size_t RequestParser::put(std::string_view bytes) {
  if (bytes.empty() || phase_ == Phase::complete) return 0;
  return phase_ == Phase::header ? put_header(bytes) : put_body(bytes);
}

std::size_t RequestParser::put_header(std::string_view bytes) {
  while (true) {
    const std::size_t newline = bytes.find('\n', searched_);
    if (std::min(newline, bytes.size()) >= max_header_bytes) {
      throw HttpError(431, fmt::format("the headers have more than {} bytes", max_header_bytes));
    }
    if (newline == std::string_view::npos) {
      searched_ = bytes.size();
      check_start(bytes.substr(line_begin_));
      return 0;
    }
    std::string_view line = bytes.substr(line_begin_, newline - line_begin_);
    check_start(line);
    if (!line.ends_with('\r')) throw HttpError(400, "a header line must end with CR LF");
    line.remove_suffix(1);
    line_begin_ = searched_ = newline + 1;
    if (line.empty() && lines_ == 0) {  // in front of a request empty lines are skipped
      line_begin_ = searched_ = 0;
      return newline + 1;
    }
    if (line.empty()) {
      finish_header(bytes.substr(0, newline + 1));
      return newline + 1;
    }
    check_line(line);
  }
}

void RequestParser::check_line(std::string_view line) {
  if (lines_++ == 0) return check_request_line(line);
  if (lines_ > 1 + max_fields) {
    throw HttpError(431, fmt::format("the request has more than {} headers", max_fields));
  }
  check_field_line(line);
}

// Rejects an invalid request line as soon as no continuation could make it valid.
void RequestParser::check_start(std::string_view line) const {
  if (lines_ > 0 || line.empty()) return;
  if (line.front() != '\r' && !is_token_character(line.front())) {
    throw HttpError(400, "this is not an HTTP request");
  }
  if (line.size() > max_request_line + 1) {  // with a CR
    throw HttpError(414, fmt::format("the address has more than {} characters", max_target));
  }
}

void RequestParser::finish_header(std::string_view bytes) {
  header_ = implementation_->parse_header(bytes);
  check_host(header_);
  split_absolute_target(header_);
  check_host(header_);
  header_.framing = body_framing(header_.fields);
  if (header_.framing.chunked && header_.is_http_1_0) {
    throw HttpError(400, "HTTP/1.0 has no Transfer-Encoding");
  }
  phase_ = implementation_->is_done() ? Phase::complete : Phase::body;
}

std::size_t RequestParser::put_body(std::string_view bytes) {
  const std::size_t consumed = implementation_->parse_body(bytes);
  if (implementation_->is_done()) phase_ = Phase::complete;
  return consumed;
}

void RequestParser::limit_body(std::uint64_t bytes) { implementation_->limit_body(bytes); }

std::string RequestParser::take_body() { return implementation_->take_body(); }

std::string reason_phrase(int status) {
  return copy(http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status))));
}

}  // namespace heed::server
