#include "server/authority.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "server/http_syntax.h"

namespace heed::server {
namespace {

constexpr std::size_t longest_host = 253;  // of the domain name system

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

}  // namespace

std::string Authority::text() const { return port ? fmt::format("{}:{}", host, *port) : host; }

std::optional<Authority> parse_authority(std::string_view text) {
  Authority authority;
  const std::size_t size = host_size(text);
  authority.host = lower_case(text.substr(0, size));
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
  if (host.empty() || host.size() > longest_host || !std::ranges::all_of(host, is_name_character)) {
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
  const std::string scheme = lower_case(text.substr(0, colon));
  if (scheme != "http" && scheme != "https") return std::nullopt;
  auto authority = parse_authority(text.substr(colon + 3));
  if (!authority) return std::nullopt;
  return Origin{.scheme = scheme, .authority = std::move(*authority)};
}

}  // namespace heed::server
