// Who may ask: checked on a request's head, before its body is read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/exchange.h"

namespace heed::server {

struct GateOptions {
  std::string api_key;                       // asked for when it is not empty
  std::vector<std::string> allowed_origins;  // other pages that may ask; "*": all
  // Names that the server may be called by, besides localhost and bare addresses. A page elsewhere
  // can let its own name point to this machine; then its requests carry that name (DNS rebinding).
  std::vector<std::string> allowed_hosts;
  std::int64_t max_body_bytes = 8 << 20;
  bool public_metrics = false;  // /metrics is answered without the key
};

class Gate {
 public:
  explicit Gate(GateOptions options) : options_(std::move(options)) {}

  // A refusal (400, 401, 403, 411, 413, 415, 421), the answer to a preflight, or nothing: come in.
  std::optional<Reply> check(const Request& request) const;

  // What a reply tells the browser about other origins.
  void add_headers(const Request& request, Reply& reply) const;

  const GateOptions& options() const { return options_; }

 private:
  bool allows_host(const std::string& host) const;
  bool allows_origin(const std::string& origin) const;
  void check_body_headers(const Request& request) const;

  GateOptions options_;
};

}  // namespace heed::server
