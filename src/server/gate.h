// Access control: checks the headers of a request before its body is received; and parses the
// authority of a request: the Host header, the Origin header and absolute request targets.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/exchange.h"

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

struct GateOptions {
  std::string api_key;                       // asked for when it is not empty
  std::vector<std::string> allowed_origins;  // of pages that may use the server; "*": all
  // Accepted host names besides localhost and IP addresses. A page of another site can make its own
  // name resolve to this machine; its requests then have that name as Host (DNS rebinding).
  std::vector<std::string> allowed_hosts;
  std::int64_t max_body_bytes = 8 << 20;
  bool public_metrics = false;  // /metrics is answered without the key
};

class Gate {
 public:
  explicit Gate(GateOptions options) : options_(std::move(options)) {}

  // Returns an error (400, 401, 403, 413, 415, 421), the response to a preflight request, or
  // nothing if the request is accepted.
  std::optional<Reply> check(const Request& request) const;

  // Adds the CORS headers of a reply.
  void add_headers(const Request& request, Reply& reply) const;

  const GateOptions& options() const { return options_; }

 private:
  bool allows_host(const Authority& host) const;
  bool allows_origin(const std::string& given) const;
  void check_host_and_origin(const Request& request) const;
  void check_body_headers(const Request& request) const;

  GateOptions options_;
};

}  // namespace heed::server
