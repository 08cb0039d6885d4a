// Parses the authority of a request: the Host header, the Origin header and absolute request
// targets.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace heed::server {

// host[:port]
struct Authority {
  std::string host;         // in lower case; IPv6 addresses in brackets and in their shortest form
  std::optional<int> port;  // 0 to 65535; none where it is left out
  bool is_address = false;  // an IPv4 or IPv6 address rather than a name

  std::string text() const;  // host[:port]
};

// None for anything else: user names, lists, unclosed brackets, ports that are not numbers.
std::optional<Authority> parse_authority(std::string_view text);

// scheme://host[:port] of a web page.
struct Origin {
  std::string scheme;  // "http" or "https"
  Authority authority;

  int port() const;          // the scheme's default where it is left out
  std::string text() const;  // the port only where it is not the scheme's default
};

// Nothing for other schemes and for "null", which browsers send for opaque origins.
std::optional<Origin> parse_origin(std::string_view text);

}  // namespace heed::server
