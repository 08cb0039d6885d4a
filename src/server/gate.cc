#include "server/gate.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "base/text.h"
#include "server/http_parser.h"

namespace heed::server {
namespace {

constexpr std::size_t max_host = 253;  // of the domain name system

constexpr int default_port(std::string_view scheme) { return scheme == "https" ? 443 : 80; }

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

std::optional<int> parse_port(std::string_view digits) {
  int port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  const bool valid = error == std::errc{} && end == digits.data() + digits.size() &&
                     digits.front() != '-' && port <= 65535;
  return valid ? std::optional(port) : std::nullopt;
}

// The canonical form of an IPv6 address such as "::1"; nothing if it is not an address.
std::optional<std::string> shortest_ipv6(const std::string& text) {
  in6_addr address{};
  if (::inet_pton(AF_INET6, text.c_str(), &address) != 1) return std::nullopt;
  std::array<char, INET6_ADDRSTRLEN> shortest{};
  ::inet_ntop(AF_INET6, &address, shortest.data(), shortest.size());
  return shortest.data();
}

bool is_ipv4(const std::string& text) {
  in_addr address{};
  return ::inet_pton(AF_INET, text.c_str(), &address) == 1;
}

// The end of the host in "[::1]:8080" or "localhost:8080".
std::size_t host_size(std::string_view text) {
  if (!text.starts_with('[')) return std::min(text.find(':'), text.size());
  const std::size_t bracket = text.find(']');
  return bracket == std::string_view::npos ? text.size() : bracket + 1;
}

// Compares all bytes in constant time, so that the time reveals nothing about the key.
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
  if (ascii_lower(authorization.substr(0, scheme.size())) == scheme) {
    return authorization.substr(scheme.size());
  }
  return request.header("x-api-key");
}

// The page contains nothing of the model and asks for the key. The health check is public, too.
bool is_public(const Request& request, const GateOptions& options) {
  return request.path == "/" || request.path.starts_with("/assets/") || request.path == "/health" ||
         (options.public_metrics && request.path == "/metrics");
}

// Whether the origin is this server itself.
bool is_own(const Origin& origin, const Authority& host) {
  const Origin own{.scheme = origin.scheme, .authority = host};
  return own.text() == origin.text();
}

// Names with commas and spaces between them, as they may be sent back.
bool is_header_list(std::string_view names) {
  return !names.empty() && std::ranges::all_of(names, [](char c) {
    return is_token_character(c) || c == ',' || c == ' ' || c == '\t';
  });
}

// Pages of other origins get it only if they are allowed, and those may send any headers: clients
// add their own, as OpenAI's does.
Reply preflight_reply(const Request& request) {
  const std::string asked = request.header("access-control-request-headers");
  Reply reply;
  reply.status = 204;
  reply.headers = {{"Access-Control-Allow-Methods", "GET, POST, DELETE"},
                   {"Access-Control-Allow-Headers",
                    is_header_list(asked) ? asked : "Authorization, Content-Type, X-Api-Key"},
                   {"Access-Control-Max-Age", "600"}};
  return reply;
}

// Following a link, which shows a page instead of using the server from one. Browsers send an
// Origin with every other method.
bool is_navigation(const Request& request) {
  return (request.method == "GET" || request.method == "HEAD") &&
         request.header("sec-fetch-mode") == "navigate";
}

}  // namespace

std::string Authority::text() const { return port ? fmt::format("{}:{}", host, *port) : host; }

std::optional<Authority> parse_authority(std::string_view text) {
  Authority authority;
  const std::size_t size = host_size(text);
  authority.host = ascii_lower(text.substr(0, size));
  if (size < text.size()) {
    if (text[size] != ':' || size + 1 == text.size()) return std::nullopt;
    authority.port = parse_port(text.substr(size + 1));
    if (!authority.port) return std::nullopt;
  }
  std::string& host = authority.host;
  if (host.starts_with('[')) {
    if (!host.ends_with(']')) return std::nullopt;
    const auto address = shortest_ipv6(host.substr(1, host.size() - 2));
    if (!address) return std::nullopt;
    host = "[" + *address + "]";
    authority.is_address = true;
    return authority;
  }
  if (host.ends_with('.')) host.pop_back();  // a name's root, which is left out as a rule
  if (host.empty() || host.size() > max_host || !std::ranges::all_of(host, is_name_character)) {
    return std::nullopt;
  }
  authority.is_address = is_ipv4(host);
  return authority;
}

int Origin::port() const { return authority.port.value_or(default_port(scheme)); }

std::string Origin::text() const {
  Authority shown = authority;
  if (shown.port == default_port(scheme)) shown.port.reset();
  return scheme + "://" + shown.text();
}

std::optional<Origin> parse_origin(std::string_view text) {
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string scheme = ascii_lower(text.substr(0, colon));
  if (scheme != "http" && scheme != "https") return std::nullopt;
  auto authority = parse_authority(text.substr(colon + 3));
  if (!authority) return std::nullopt;
  return Origin{.scheme = scheme, .authority = std::move(*authority)};
}

bool Gate::allows_host(const Authority& host) const {
  return host.is_address || host.host == "localhost" ||
         std::ranges::any_of(options_.allowed_hosts, [&](const std::string& name) {
           const auto allowed = parse_authority(name);
           return allowed && allowed->host == host.host;
         });
}

bool Gate::allows_origin(const std::string& given) const {
  const auto origin = parse_origin(given);
  return std::ranges::any_of(options_.allowed_origins, [&](const std::string& allowed) {
    if (allowed == "*" || allowed == given) return true;
    const auto parsed = parse_origin(allowed);
    return origin && parsed && parsed->text() == origin->text();
  });
}

void Gate::check_host_and_origin(const Request& request) const {
  const auto host = parse_authority(request.header("host"));
  if (!host) throw HttpError(400, "the Host header must be one host[:port]");
  if (!allows_host(*host)) {
    throw HttpError(421, fmt::format("this server does not accept the host '{0}'; to accept it, "
                                     "start it with --allow-host {0}",
                                     host->host));
  }
  const std::string given = request.header("origin");
  if (given.empty()) {
    // Images and scripts of other pages come without an Origin; links that are followed may.
    if (request.header("sec-fetch-site") == "cross-site" && !is_navigation(request) &&
        !allows_origin(given)) {
      throw HttpError(403,
                      "pages of other origins may not use this server; to allow them, start it "
                      "with --allow-origin '*'");
    }
    return;
  }
  const auto origin = parse_origin(given);
  if (allows_origin(given) || (origin && is_own(*origin, *host))) return;
  // Every sandboxed frame and local file has it, so allowing it would allow them all.
  if (given == "null") {
    throw HttpError(403,
                    "pages without an origin, such as files and sandboxed frames, may not use this "
                    "server; serve the page over HTTP and allow its origin with --allow-origin");
  }
  throw HttpError(403, fmt::format("pages of '{0}' may not use this server; to allow them, start "
                                   "it with --allow-origin {0}",
                                   origin ? origin->text() : given.substr(0, 100)));
}

void Gate::check_body_headers(const Request& request) const {
  const BodyFraming framing = body_framing(request.headers);
  if (framing.length > static_cast<std::uint64_t>(options_.max_body_bytes)) {
    throw HttpError(413, fmt::format("the body has {} bytes; at most {} are accepted (--max-body)",
                                     framing.length, options_.max_body_bytes));
  }
  if (!request.header("content-encoding").empty()) {
    throw HttpError(415, "a body must not be compressed (Content-Encoding)");
  }
  const std::string type = ascii_lower(request.header("content-type"));
  if (type.starts_with("multipart/")) {
    throw HttpError(415, "a body must be JSON (Content-Type: application/json), not a form");
  }
}

std::optional<Reply> Gate::check(const Request& request) const {
  try {
    check_host_and_origin(request);
    if (request.method == "OPTIONS") return preflight_reply(request);
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
