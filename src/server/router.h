// Which handler answers which request.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
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
  using QueryNames = std::vector<std::string>;

  // Called for every reply once it is complete, including streamed ones: the pattern of its route,
  // or "unmatched", its status, and the seconds since the request. It outlives the replies.
  using Observer = std::function<void(const std::string& route, int status, double seconds)>;
  void set_observer(Observer observer) { observer_ = std::move(observer); }

  // A name at the end may stand for several segments, whose text may hold escaped slashes:
  // "/v1/models/{model...}", which other functions call "/v1/models/{model}". If several patterns
  // match, the one that was added first is used.
  void add(const std::string& method, const std::string& pattern, Handler handler);

  // What a 404 says of addresses that are `prefix` or below it, where nothing else matches.
  void add_moved(std::string prefix, std::string message);

  // Never throws: an exception of a handler becomes an error reply. 404 if no pattern matches the
  // path, 405 if one matches for another method.
  Reply handle(Request request) const;

  // Refuses other parameters than these of a route that was added (400).
  void allow_queries(const Route& route, QueryNames names);

  // All routes, for comparison with the OpenAPI document.
  std::vector<Route> routes() const;

 private:
  struct Entry {
    Route route;
    std::vector<std::string> segments;  // of the pattern
    Handler handler;
    std::optional<QueryNames> queries{};  // none: any
  };
  class Timer;
  Reply answer(Request& request, std::string& route) const;

  std::string why_nothing(const std::string& path) const;

  std::vector<Entry> entries_;
  std::vector<std::pair<std::string, std::string>> moved_;  // prefixes and messages
  Observer observer_;
};

}  // namespace heed::server
