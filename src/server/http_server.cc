#include "server/http_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/memory.h"
#include "server/connection.h"
#include "server/connection_threads.h"

namespace heed::server {
namespace {

constexpr std::size_t longest_target = 2048;
constexpr int most_requests_per_connection = 1000;
constexpr int threads_for_refusals = 8;
// So long after the last request, and the threads that it took, free memory goes back to the
// system.
constexpr std::chrono::milliseconds quiet_time = 2 * ConnectionThreads::idle_time;

class SinkWriter : public StreamWriter {
 public:
  explicit SinkWriter(httplib::DataSink& sink) : sink_(sink) {}
  bool write(std::string_view bytes) override { return sink_.write(bytes.data(), bytes.size()); }

 private:
  httplib::DataSink& sink_;
};

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return text;
}

// What this thread's connection is in the middle of.
struct Exchange {
  Connection* connection = nullptr;
  std::map<std::string, std::string> headers;
  bool head_read = false;
  bool body_read = true;  // or there is none: the next request follows
};
thread_local Exchange* current = nullptr;

// Tells once, after a change, that there was no other for quiet_time.
class Quiet {
 public:
  bool begins(std::int64_t changes) {
    const auto now = Connection::Clock::now();
    if (changes != changes_) {
      changes_ = changes;
      since_ = now;
      told_ = false;
    }
    if (told_ || now - since_ < quiet_time) return false;
    told_ = true;
    return true;
  }

 private:
  std::int64_t changes_ = 0;
  Connection::Clock::time_point since_;
  bool told_ = true;
};

}  // namespace

class HttpServer::Implementation : private httplib::Server {
 public:
  Implementation(const Router& router, const Gate& gate, const HttpOptions& options)
      : router_(router), gate_(gate), options_(options) {
    new_task_queue = [this] {
      return new ConnectionThreads(
          static_cast<std::size_t>(options_.max_connections + threads_for_refusals));
    };
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      return answer_head(request, response);
    });
    const auto with_body = [this](const httplib::Request& request, httplib::Response& response,
                                  const httplib::ContentReader& reader) {
      answer_with_body(request, response, reader);
    };
    const char* anything = "[\\s\\S]*";
    Post(anything, with_body);
    Put(anything, with_body);
    Patch(anything, with_body);
    Delete(anything, with_body);
    set_error_handler(
        [](const httplib::Request&, httplib::Response& response) { explain_failure(response); });
    // Ports of servers that are gone can be had at once, those of others never: the library's own
    // options would let two servers share one.
    set_socket_options([](socket_t socket) {
      const int on = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    set_tcp_nodelay(true);
    set_keep_alive_max_count(most_requests_per_connection);
    set_keep_alive_timeout(static_cast<time_t>(options_.idle_time.count()));
    bind();
  }

  int port() const { return port_; }
  std::int64_t connections() const { return open_.load(); }
  std::int64_t requests_processing() const { return processing_.load(); }

  void run(StopFlag stop) {
    std::thread listener([this] { listen_after_bind(); });
    while (!is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Quiet quiet;
    while (!stop_requested(stop)) {
      watch_connections();
      if (quiet.begins(changes_.load())) return_free_memory();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    closing_.store(true);
    httplib::Server::stop();
    const auto deadline = Connection::Clock::now() + options_.grace_time;
    while (open_.load() > 0) {
      watch_connections();
      if (Connection::Clock::now() > deadline) end_all();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    listener.join();
  }

 private:
  void bind() {
    port_ = options_.port;
    bool bound = false;
    if (options_.port == 0) {
      port_ = bind_to_any_port(options_.host);
      bound = port_ > 0;
    } else {
      while (!bound && port_ <= std::min(options_.port + options_.next_ports, 65535)) {
        bound = bind_to_port(options_.host, port_);
        if (!bound) ++port_;
      }
    }
    require(bound, ErrorCode::input_output,
            "cannot listen on {}:{}: the port is in use, or the address is not of this machine",
            options_.host, options_.port);
    ::listen(svr_sock_, 512);  // the library's own queue of 5 is too short for a crowd
  }

  void watch_connections() {
    const std::lock_guard lock(mutex_);
    for (Connection* connection : connections_) connection->watch();
  }

  void end_all() {
    const std::lock_guard lock(mutex_);
    for (Connection* connection : connections_) connection->end(Ending::server_stops);
  }

  // The library calls this on a thread of its pool.
  bool process_and_close_socket(socket_t socket) override {
    Connection connection(socket, options_);
    changes_.fetch_add(1);
    if (open_.fetch_add(1) < options_.max_connections) {
      {
        const std::lock_guard lock(mutex_);
        connections_.insert(&connection);
      }
      serve(connection);
      const std::lock_guard lock(mutex_);
      connections_.erase(&connection);
    } else {
      refuse(connection, 503, "Service Unavailable", "the server has too many connections");
    }
    ::close(socket);
    open_.fetch_sub(1);
    changes_.fetch_add(1);
    return true;
  }

  void serve(Connection& connection) {
    Exchange exchange{.connection = &connection};
    current = &exchange;
    for (int count = 1; connection.wait_for_request(closing_); ++count) {
      exchange.head_read = false;
      exchange.body_read = true;
      connection.begin_head();
      bool closed = false;
      const bool last = count == most_requests_per_connection || closing_.load();
      const bool written =
          process_request(connection, last, closed,
                          [&](httplib::Request& request) { take_head(request, exchange); });
      const Ending ending = connection.ending();
      connection.end_reply();
      if (exchange.head_read) processing_.fetch_sub(1);
      changes_.fetch_add(1);
      if (!written && !exchange.head_read && connection.has_begun()) {
        refuse_head(connection);
        break;
      }
      if (!written || ending != Ending::none) break;
      if (!exchange.head_read || !exchange.body_read) {
        connection.linger();
        break;
      }
      if (closed || last) break;
    }
    current = nullptr;
  }

  void take_head(httplib::Request& request, Exchange& exchange) {
    exchange.head_read = true;
    changes_.fetch_add(1);
    processing_.fetch_add(1);
    exchange.headers.clear();
    for (const auto& [name, value] : request.headers) {
      std::string& joined = exchange.headers[lower(name)];
      joined += (joined.empty() ? "" : ", ") + value;
    }
    const bool has_body =
        request.has_header("Content-Length") || request.has_header("Transfer-Encoding");
    exchange.body_read = !has_body || exchange.headers["content-length"] == "0";
    // A request without either has no body; the library would wait for the end of the connection.
    if (!has_body) request.set_header("Content-Length", "0");
    // Neither parts of a reply nor its compression are the library's business here.
    request.ranges.clear();
    request.headers.erase("Accept-Encoding");
    exchange.connection->begin_body();
  }

  static Request convert(const httplib::Request& request) {
    if (request.target.size() > longest_target) {
      throw HttpError(414, fmt::format("the address may have {} characters, not {}", longest_target,
                                       request.target.size()));
    }
    Request converted = parse_request(request.method, request.target);
    converted.headers = current->headers;
    converted.stop = current->connection->stop_flag();
    return converted;
  }

  // All but the body is there: refuses, answers what has no body, or leaves it to
  // answer_with_body().
  HandlerResponse answer_head(const httplib::Request& given, httplib::Response& response) {
    try {
      const Request request = convert(given);
      if (std::optional<Reply> refusal = gate_.check(request)) {
        // Where a malformed request ends is not known: nothing behind it is read as the next.
        if (refusal->status == 400) current->body_read = false;
        send(std::move(*refusal), request, response);
        return HandlerResponse::Handled;
      }
      if (request.method == "POST" || request.method == "PUT" || request.method == "PATCH" ||
          request.method == "DELETE") {
        return HandlerResponse::Unhandled;
      }
      answer(request, response);
    } catch (...) {
      send(reply_to_exception(), Request{}, response);
    }
    return HandlerResponse::Handled;
  }

  void answer_with_body(const httplib::Request& given, httplib::Response& response,
                        const httplib::ContentReader& reader) {
    try {
      Request request = convert(given);
      const auto most = static_cast<std::size_t>(gate_.options().max_body_bytes);
      const bool whole = reader([&](const char* bytes, std::size_t size) {
        if (size > most - request.body.size()) {
          throw HttpError(413, fmt::format("the body may have {} bytes, not more", most));
        }
        request.body.append(bytes, size);
        return true;
      });
      if (!whole) {
        const bool late = current->connection->timed_out();
        throw HttpError(late ? 408 : 400, late ? "the body took too long to arrive"
                                               : "the body is shorter than announced");
      }
      current->body_read = true;
      answer(request, response);
    } catch (...) {
      send(reply_to_exception(), Request{}, response);
    }
  }

  void answer(const Request& request, httplib::Response& response) {
    current->connection->begin_reply();
    Reply reply = router_.handle(request);
    if (current->connection->ending() == Ending::out_of_time && reply.status == 503) {
      reply = error_reply(
          408, fmt::format("the reply took longer than {} s", options_.request_time.count()));
    }
    send(std::move(reply), request, response);
  }

  void send(Reply reply, const Request& request, httplib::Response& response) {
    gate_.add_headers(request, reply);
    if (!current->body_read) reply.headers.emplace_back("Connection", "close");
    response.status = reply.status;
    for (const auto& [name, value] : reply.headers) response.set_header(name, value);
    if (!reply.stream) {
      response.body = std::move(reply.body);
      if (response.status != 204) response.set_header("Content-Type", reply.content_type);
      return;
    }
    const auto provide = [stream = std::move(reply.stream)](std::size_t, httplib::DataSink& sink) {
      SinkWriter writer(sink);
      try {
        stream(writer);
      } catch (...) {
        return false;  // cuts the reply short, and the connection with it
      }
      sink.done();
      return true;
    };
    response.set_chunked_content_provider(reply.content_type, provide);
  }

  // The library's own refusals have no body.
  static void explain_failure(httplib::Response& response) {
    if (!response.body.empty() || current == nullptr) return;
    if (current->connection->head_too_large()) response.status = 431;
    if (current->connection->timed_out()) response.status = 408;
    const int status = response.status;
    response.body = error_reply(status, status == 414   ? "the address is too long"
                                        : status == 431 ? "the headers are too long"
                                        : status == 408 ? "the request took too long to arrive"
                                                        : "this is no HTTP request")
                        .body;
    response.set_header("Content-Type", "application/json");
    response.set_header("Connection", "close");
  }

  static void refuse_head(Connection& connection) {
    if (connection.timed_out()) {
      refuse(connection, 408, "Request Timeout", "the request took too long to arrive");
    } else if (connection.head_too_large()) {
      refuse(connection, 431, "Request Header Fields Too Large", "the headers are too long");
    } else {
      refuse(connection, 400, "Bad Request", "this is no HTTP request");
    }
  }

  static void refuse(Connection& connection, int status, const char* reason,
                     const std::string& message) {
    const std::string body = error_reply(status, message).body;
    connection.write_all(
        fmt::format("HTTP/1.1 {} {}\r\nContent-Type: application/json\r\n"
                    "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
                    status, reason, body.size(), body));
    connection.linger();
  }

  const Router& router_;
  const Gate& gate_;
  const HttpOptions options_;
  int port_ = 0;
  std::atomic<bool> closing_{false};
  std::atomic<std::int64_t> changes_{0};  // beginnings and ends of connections and requests
  std::atomic<std::int64_t> open_{0};
  std::atomic<std::int64_t> processing_{0};
  std::mutex mutex_;
  std::set<Connection*> connections_;
};

HttpServer::HttpServer(const Router& router, const Gate& gate, const HttpOptions& options)
    : implementation_(std::make_unique<Implementation>(router, gate, options)) {}
HttpServer::~HttpServer() = default;
int HttpServer::port() const { return implementation_->port(); }
void HttpServer::run(StopFlag stop) { implementation_->run(stop); }
std::int64_t HttpServer::connections() const { return implementation_->connections(); }
std::int64_t HttpServer::requests_processing() const {
  return implementation_->requests_processing();
}

}  // namespace heed::server
