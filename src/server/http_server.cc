#include "server/http_server.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "base/memory.h"
#include "server/connection.h"
#include "server/http_session.h"
#include "server/listener.h"

namespace heed::server {
namespace {

using Clock = Connection::Clock;

constexpr int threads_for_refusals = 8;
constexpr int max_lingering_refusals = 4 * threads_for_refusals;
// How often connections are checked while replies are computed; more often during shutdown.
constexpr std::chrono::milliseconds watch_interval{50};
constexpr std::chrono::milliseconds stop_interval{10};
// Time after the last request and the end of its threads until free memory is returned to the
// system.
constexpr std::chrono::milliseconds quiet_time = 2 * ConnectionThreads::idle_time;

// Returns true once when there was no change for quiet_time after the last one.
class Quiet {
 public:
  bool begins(std::int64_t changes) {
    const auto now = Clock::now();
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
  Clock::time_point since_;
  bool told_ = true;
};

}  // namespace

class HttpServer::Implementation {
 public:
  Implementation(const Router& router, const Gate& gate, const HttpOptions& options)
      : options_(options),
        services_{.router = router, .gate = gate, .options = options_, .traffic = traffic_},
        listener_(options.host, options.port, options.next_ports),
        threads_(static_cast<std::size_t>(options.max_connections + threads_for_refusals)) {}

  int port() const { return listener_.port(); }
  const Traffic& traffic() const { return traffic_; }

  void run(StopFlag stop) {
    accept_until(stop);
    listener_.close();
    stopping_.store(true);
    const auto deadline = Connection::after(options_.grace_time);
    while (traffic_.open.load() > 0) {
      watch_connections();
      if (Clock::now() > deadline) end_connections();
      std::this_thread::sleep_for(stop_interval);
    }
    threads_.shutdown();
  }

 private:
  void accept_until(StopFlag stop) {
    Quiet quiet;
    auto last_watch = Clock::now();
    while (!stop_requested(stop)) {
      if (const auto client = listener_.accept(watch_interval)) {
        begin(*client);
      }
      if (Clock::now() - last_watch < watch_interval) continue;
      last_watch = Clock::now();
      watch_connections();
      if (quiet.begins(traffic_.changes.load())) return_free_memory();
    }
  }

  void begin(int client) {
    traffic_.open.fetch_add(1);
    traffic_.changes.fetch_add(1);
    auto& count = served_.load() < options_.max_connections ? served_ : refused_;
    count.fetch_add(1);
    threads_.enqueue([this, client, &count] {
      serve(client, &count == &served_);
      count.fetch_sub(1);
      traffic_.open.fetch_sub(1);
      traffic_.changes.fetch_add(1);
    });
  }

  void serve(int client, bool is_within_limit) {
    Connection connection(client, options_, stopping_);
    const Listed listed(*this, connection);
    HttpSession session(connection, services_);
    try {
      if (is_within_limit) return session.run();
      session.refuse();
      // More of them do not get the time to read it before the connection breaks.
      if (refused_.load() <= max_lingering_refusals) connection.linger();
    } catch (const std::exception&) {  // no memory, not even for saying so
    }
  }

  // Registers a connection with the threads that watch and end it.
  class Listed {
   public:
    Listed(Implementation& server, Connection& connection)
        : server_(server), connection_(connection) {
      const std::lock_guard lock(server_.mutex_);
      server_.connections_.insert(&connection_);
    }
    ~Listed() {
      const std::lock_guard lock(server_.mutex_);
      server_.connections_.erase(&connection_);
    }
    Listed(const Listed&) = delete;
    Listed& operator=(const Listed&) = delete;

   private:
    Implementation& server_;
    Connection& connection_;
  };

  void watch_connections() {
    const std::lock_guard lock(mutex_);
    for (Connection* connection : connections_) connection->watch();
  }

  void end_connections() {
    const std::lock_guard lock(mutex_);
    for (Connection* connection : connections_) connection->end(Ending::server_stops);
  }

  const HttpOptions options_;
  Traffic traffic_;
  const HttpServices services_;
  Listener listener_;
  ConnectionThreads threads_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::int64_t> served_{0};   // connections within the limit
  std::atomic<std::int64_t> refused_{0};  // and beyond it
  std::mutex mutex_;
  std::set<Connection*> connections_;
};

HttpServer::HttpServer(const Router& router, const Gate& gate, const HttpOptions& options)
    : implementation_(std::make_unique<Implementation>(router, gate, options)) {}
HttpServer::~HttpServer() = default;
int HttpServer::port() const { return implementation_->port(); }
void HttpServer::run(StopFlag stop) { implementation_->run(stop); }
std::int64_t HttpServer::connections() const { return implementation_->traffic().open.load(); }
std::int64_t HttpServer::requests_processing() const {
  return implementation_->traffic().processing.load();
}

}  // namespace heed::server
