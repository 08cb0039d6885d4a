#include "server/gate.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

#include "base/error.h"

namespace heed::server {
namespace {

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return text;
}

// "name:8080" and "[::1]:8080" without the port.
std::string host_name(const std::string& host) {
  if (host.starts_with('[')) {
    const std::size_t end = std::min(host.find(']'), host.size() - 1) + 1;
    return end == host.size() || host[end] == ':' ? host.substr(0, end) : host;
  }
  return lower(host.substr(0, host.find(':')));
}

// A name cannot be made of these characters alone, for no top-level domain is a number.
bool is_bare_address(const std::string& name) {
  if (name.starts_with('[')) return name.ends_with(']');
  return !name.empty() && name.find_first_not_of("0123456789.") == std::string::npos;
}

// Compares every byte wherever the first difference is: the time tells nothing of the key.
bool same_key(const std::string& given, const std::string& key) {
  unsigned difference = given.size() == key.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    difference |=
        static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(key[i % key.size()]);
  }
  return difference == 0;
}

std::string given_key(const Request& request) {
  constexpr std::string_view scheme = "bearer ";
  const std::string authorization = request.header("authorization");
  if (lower(authorization.substr(0, scheme.size())) == scheme) {
    return authorization.substr(scheme.size());
  }
  return request.header("x-api-key");
}

// The page itself holds nothing of the model; it asks for the key. Whether the server is up is no
// secret either.
bool is_public(const Request& request, const GateOptions& options) {
  return request.path == "/" || request.path.starts_with("/assets/") || request.path == "/health" ||
         (options.public_metrics && request.path == "/metrics");
}

// A name such as "content-length " means something to one reader and nothing to another, who then
// disagree about where the next request begins.
void check_header_names(const Request& request) {
  const auto belongs = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
  };
  for (const auto& [name, value] : request.headers) {
    if (name.empty() || !std::ranges::all_of(name, belongs)) {
      throw HttpError(400, "a header's name holds characters that no name has");
    }
  }
}

Reply preflight_reply() {
  Reply reply;
  reply.status = 204;
  reply.headers = {{"Access-Control-Allow-Methods", "GET, POST, DELETE"},
                   {"Access-Control-Allow-Headers", "Authorization, Content-Type, X-Api-Key"},
                   {"Access-Control-Max-Age", "600"}};
  return reply;
}

}  // namespace

bool Gate::allows_host(const std::string& host) const {
  const std::string name = host_name(host);
  return name == "localhost" || is_bare_address(name) || contains(options_.allowed_hosts, name);
}

bool Gate::allows_origin(const std::string& origin) const {
  return contains(options_.allowed_origins, "*") || contains(options_.allowed_origins, origin);
}

void Gate::check_body_headers(const Request& request) const {
  const std::string length = request.header("content-length");
  const std::string transfer = lower(request.header("transfer-encoding"));
  if (!transfer.empty() && (transfer != "chunked" || !length.empty())) {
    throw HttpError(400, "a body comes either with its Content-Length or in chunks");
  }
  if (!length.empty()) {
    std::int64_t bytes = 0;
    const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), bytes);
    if (error == std::errc::result_out_of_range) bytes = options_.max_body_bytes + 1;
    if (error == std::errc::invalid_argument || end != length.data() + length.size() || bytes < 0) {
      throw HttpError(400, "the Content-Length is no number");
    }
    if (bytes > options_.max_body_bytes) {
      throw HttpError(413, fmt::format("the body may have {} bytes, not {}",
                                       options_.max_body_bytes, length.substr(0, 30)));
    }
  }
  if (!request.header("content-encoding").empty()) {
    throw HttpError(415, "a body must not be compressed (Content-Encoding)");
  }
  const std::string type = lower(request.header("content-type"));
  if (type.starts_with("multipart/")) {
    throw HttpError(415, "a body must be JSON (Content-Type: application/json), not a form");
  }
}

std::optional<Reply> Gate::check(const Request& request) const {
  try {
    check_header_names(request);
    const std::string host = request.header("host");
    if (host.empty()) throw HttpError(400, "the request has no Host header");
    if (!allows_host(host)) {
      throw HttpError(421, "this server is not called '" + host.substr(0, 100) +
                               "'; start it with --allow-host to let it be");
    }
    const std::string origin = request.header("origin");
    const bool own = origin == "http://" + host || origin == "https://" + host;
    if (!origin.empty() && !own && !allows_origin(origin)) {
      throw HttpError(403,
                      "pages of '" + origin.substr(0, 100) +
                          "' may not ask this server; start it with --allow-origin to let them");
    }
    // Images and scripts of other pages come without an Origin; links that are followed may.
    if (origin.empty() && request.header("sec-fetch-site") == "cross-site" &&
        request.header("sec-fetch-mode") != "navigate" && !allows_origin(origin)) {
      throw HttpError(403, "other pages may not ask this server");
    }
    if (request.method == "OPTIONS") return preflight_reply();
    if (!options_.api_key.empty() && !is_public(request, options_) &&
        !same_key(given_key(request), options_.api_key)) {
      Reply reply = error_reply(401, "the key is missing or wrong (Authorization: Bearer KEY)");
      reply.headers.emplace_back("WWW-Authenticate", "Bearer");
      return reply;
    }
    check_body_headers(request);
    return std::nullopt;
  } catch (...) {
    return reply_to_exception();
  }
}

void Gate::add_headers(const Request& request, Reply& reply) const {
  const std::string origin = request.header("origin");
  if (!origin.empty() && allows_origin(origin)) {
    reply.headers.emplace_back("Access-Control-Allow-Origin", origin);
    reply.headers.emplace_back("Access-Control-Expose-Headers",
                               "X-Heed-Dtype, X-Heed-Shape, X-Heed-Warning");
  }
  reply.headers.emplace_back("Vary", "Origin");
  reply.headers.emplace_back("X-Content-Type-Options", "nosniff");
  const auto is_caching = [](const auto& header) { return header.first == "Cache-Control"; };
  if (std::none_of(reply.headers.begin(), reply.headers.end(), is_caching)) {
    reply.headers.emplace_back("Cache-Control", "no-store");
  }
}

}  // namespace heed::server
