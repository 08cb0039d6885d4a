#include "server/http_parser.h"

#include <fmt/format.h>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <functional>
#include <limits>

#include "server/authority.h"
#include "server/exchange.h"

namespace heed::server {
namespace {

namespace http = boost::beast::http;

constexpr std::size_t most_header_bytes = 64 << 10;
constexpr int most_fields = 100;
// A chunk's size with its extensions, or the last one with the trailer section.
constexpr std::size_t most_chunk_header_bytes = 16 << 10;

template <class View>
std::string copy(const View& view) {
  return std::string(view.data(), view.size());
}

// Of "http://host:port/path" the host replaces the Host header (RFC 9112, 3.2.2).
void split_absolute_target(RequestHeader& header) {
  const std::string& target = header.target;
  const std::string start = lower_case(std::string_view(target).substr(0, 8));
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
          header.fields.emplace(lower_case(copy(field.name_string())), value);
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
      throw HttpError(413, fmt::format("the body may have {} bytes, not more", most_body_bytes_));
    }
    if (error && error != http::error::need_more) {
      throw HttpError(400, fmt::format("the chunked body is malformed ({})", error.message()));
    }
    if (!parser_.is_done() && bytes.size() - consumed > most_chunk_header_bytes) {
      throw HttpError(400, "a chunk's header or the trailer section is too long");
    }
    has_begun_body_ = has_begun_body_ || consumed > 0;
    if (parser_.is_done() && last_chunk_end_ != nullptr) {
      check_trailer({last_chunk_end_, bytes.data() + consumed});
    }
    return consumed;
  }

  void limit_body(std::uint64_t bytes) {
    most_body_bytes_ = bytes;
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
  std::uint64_t most_body_bytes_ = 0;
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
    if (std::min(newline, bytes.size()) >= most_header_bytes) {
      throw HttpError(431, fmt::format("the headers have more than {} bytes", most_header_bytes));
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
  if (lines_ > 1 + most_fields) {
    throw HttpError(431, fmt::format("the request has more than {} headers", most_fields));
  }
  check_field_line(line);
}

// Rejects an invalid request line as soon as no continuation could make it valid.
void RequestParser::check_start(std::string_view line) const {
  if (lines_ > 0 || line.empty()) return;
  if (line.front() != '\r' && !is_token_character(line.front())) {
    throw HttpError(400, "this is not an HTTP request");
  }
  if (line.size() > longest_request_line + 1) {  // with a CR
    throw HttpError(414, fmt::format("the address has more than {} characters", longest_target));
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
