#include "server/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "server/fields.h"

namespace heed::server {
namespace {

constexpr std::string_view rest_mark = "...}";  // ends a name that stands for several segments

bool is_capture(const std::string& segment) {
  return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}

std::string joined(const std::vector<std::string>& segments, std::size_t begin) {
  std::string text = segments[begin];
  for (std::size_t i = begin + 1; i < segments.size(); ++i) text += "/" + segments[i];
  return text;
}

// Matches a path against a pattern, and extracts the values of its {names}.
bool matches(const std::vector<std::string>& pattern, const std::vector<std::string>& path,
             std::map<std::string, std::string>& captured) {
  captured.clear();
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (i >= path.size()) return false;
    if (pattern[i].ends_with(rest_mark)) {
      captured[pattern[i].substr(1, pattern[i].size() - 1 - rest_mark.size())] = joined(path, i);
      return !path[i].empty();
    }
    if (is_capture(pattern[i])) {
      if (path[i].empty() || path[i].find('/') != std::string::npos) return false;
      captured[pattern[i].substr(1, pattern[i].size() - 2)] = path[i];
    } else if (pattern[i] != path[i]) {
      return false;
    }
  }
  return pattern.size() == path.size();
}

void check_queries(const std::map<std::string, std::string>& given,
                   const Router::QueryNames& names) {
  for (const auto& [name, value] : given) {
    if (std::ranges::find(names, name) != names.end()) continue;
    const std::vector<std::string> nearest = nearest_names(name, names, 1);
    const std::string field = name.substr(0, 100);
    throw FieldError(
        field, field_code::unknown,
        nearest.empty()
            ? fmt::format("the address has an unknown parameter '{}'; it takes none", field)
            : fmt::format("the address has an unknown parameter '{}'; did you mean "
                          "'{}'?",
                          field, nearest.front()));
  }
}

}  // namespace

void Router::add(const std::string& method, const std::string& pattern, Handler handler) {
  std::string shown = pattern;
  if (const std::size_t mark = shown.find(rest_mark); mark != std::string::npos) {
    shown.replace(mark, rest_mark.size(), "}");
  }
  entries_.push_back(
      {{method, std::move(shown)}, parse_request(method, pattern).segments, std::move(handler)});
}

void Router::allow_queries(const Route& route, QueryNames names) {
  for (Entry& entry : entries_) {
    const bool is_it = entry.route.method == route.method && entry.route.pattern == route.pattern;
    if (is_it) entry.queries = names;
  }
}

// From a request to the end of its reply, or to the destruction of a reply that is never sent.
class Router::Timer {
 public:
  explicit Timer(const Observer& observer) : observer_(observer) {}
  ~Timer() { stop(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void stop() {
    if (stopped_) return;
    stopped_ = true;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    observer_(route, status, elapsed.count());
  }

  std::string route = "unmatched";
  int status = 0;

 private:
  const Observer& observer_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool stopped_ = false;
};

Reply Router::handle(Request request) const {
  if (!observer_) {
    std::string route;
    return answer(request, route);
  }
  const auto timer = std::make_shared<Timer>(observer_);
  Reply reply = answer(request, timer->route);
  timer->status = reply.status;
  if (!reply.stream) {
    timer->stop();
    return reply;
  }
  reply.stream = [timer, stream = std::move(reply.stream)](StreamWriter& writer) {
    const bool goes_on = stream(writer);
    if (!goes_on) timer->stop();
    return goes_on;
  };
  return reply;
}

void Router::add_moved(std::string prefix, std::string message) {
  moved_.emplace_back(std::move(prefix), std::move(message));
}

std::string Router::why_nothing(const std::string& path) const {
  const std::string text = "there is nothing at " + path.substr(0, 200);
  for (const auto& [prefix, message] : moved_) {
    if (path == prefix || path.starts_with(prefix + "/")) return text + ": " + message;
  }
  return text;
}

Reply Router::answer(Request& request, std::string& route) const {
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  std::string allowed;
  try {
    for (const Entry& entry : entries_) {
      if (!matches(entry.segments, request.segments, request.captured)) continue;
      route = entry.route.pattern;
      if (entry.route.method == method) {
        if (entry.queries) check_queries(request.query, *entry.queries);
        return entry.handler(request);
      }
      if (allowed.find(entry.route.method) == std::string::npos) {
        allowed += (allowed.empty() ? "" : ", ") + entry.route.method;
      }
    }
  } catch (...) {
    return reply_to_exception();
  }
  const std::string shown = request.path.substr(0, 200);
  if (allowed.empty()) return error_reply(404, why_nothing(request.path));
  Reply reply = error_reply(405, shown + " takes " + allowed + ", not " + request.method);
  reply.headers.emplace_back("Allow", allowed);
  return reply;
}

std::vector<Router::Route> Router::routes() const {
  std::vector<Route> routes;
  for (const Entry& entry : entries_) routes.push_back(entry.route);
  return routes;
}

}  // namespace heed::server
