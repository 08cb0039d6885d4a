// Which handler answers which request.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/exchange.h"

namespace heed::server {

using Handler = std::function<Reply(const Request&)>;

class Router {
 public:
  struct Route {
    std::string method;   // "GET", "POST", "DELETE"
    std::string pattern;  // "/api/traces/{id}/heads": {name} stands for one whole segment
  };

  // An earlier route goes before a later one that would match too.
  void add(const std::string& method, const std::string& pattern, Handler handler);

  // Never throws: what a handler throws becomes the error reply that it stands for. 404 where no
  // pattern matches the path, 405 where another method would be right.
  Reply handle(Request request) const;

  // All that was added, for comparison with the OpenAPI document.
  std::vector<Route> routes() const;

 private:
  struct Entry {
    Route route;
    std::vector<std::string> segments;  // of the pattern
    Handler handler;
  };
  std::vector<Entry> entries_;
};

}  // namespace heed::server
