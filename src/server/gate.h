// Access control: checks the headers of a request before its body is received.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/authority.h"
#include "server/exchange.h"

namespace heed::server {

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
