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

  // Told of every reply once it is complete, streamed ones included: the pattern of its route, or
  // "unmatched", its status, and the seconds since the request. It outlives the replies.
  using Observer = std::function<void(const std::string& route, int status, double seconds)>;
  void set_observer(Observer observer) { observer_ = std::move(observer); }

  // Where several patterns match, the one that was added first is taken.
  void add(const std::string& method, const std::string& pattern, Handler handler);

  // Never throws: what a handler throws becomes its error reply. 404 where no pattern matches the
  // path, 405 where one matches for another method.
  Reply handle(Request request) const;

  // All routes, for comparison with the OpenAPI document.
  std::vector<Route> routes() const;

 private:
  struct Entry {
    Route route;
    std::vector<std::string> segments;  // of the pattern
    Handler handler;
  };
  class Timer;
  Reply answer(Request& request, std::string& route) const;

  std::vector<Entry> entries_;
  Observer observer_;
};

}  // namespace heed::server
