// Any bytes on a connection: replies that begin as HTTP's do, or none; and the next client is
// served. Time limits are short, for what never ends ends there.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "server/http_server.h"

namespace heed::server {
namespace {

HttpOptions hasty() {
  HttpOptions options;
  options.port = 0;
  options.max_connections = 4;
  options.head_time = options.body_time = options.idle_time = HttpOptions::Seconds(0.01);
  options.write_time = options.request_time = options.grace_time = HttpOptions::Seconds(1);
  return options;
}

Router small_router() {
  Router router;
  router.add("GET", "/", [](const Request&) { return json_reply({{"ok", true}}); });
  router.add("POST", "/json",
             [](const Request& request) { return json_reply(OrderedJson(request.json())); });
  router.add("GET", "/stream/{name}", [](const Request& request) {
    Reply reply;
    reply.stream = [name = request.in_path("name")](StreamWriter& writer) { writer.write(name); };
    return reply;
  });
  return router;
}

class Server {
 public:
  Server() : thread_([this] { server_.run(&stop_); }) {}
  ~Server() {
    stop_ = true;
    thread_.join();
  }
  int port() const { return server_.port(); }

 private:
  Router router_ = small_router();
  Gate gate_{GateOptions{.max_body_bytes = 1 << 16}};
  HttpServer server_{router_, gate_, hasty()};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// A connection. The system keeps the numbers of closed ones for a while, and may run out of them.
int connect_to(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int attempt = 0; attempt < 80; ++attempt) {
    const int client = ::socket(AF_INET, SOCK_STREAM, 0);
    if (client < 0) break;
    if (::connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
      return client;
    const int reason = errno;
    ::close(client);
    if (reason != EADDRNOTAVAIL) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  std::perror("connect");
  std::abort();
}

// All that comes back for these bytes.
std::string exchange(int port, std::string_view bytes) {
  const int client = connect_to(port);
  ::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  ::shutdown(client, SHUT_WR);
  std::string reply;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::recv(client, buffer, sizeof buffer, 0)) > 0;) {
    reply.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(client);
  return reply;
}

}  // namespace
}  // namespace heed::server

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace heed::server;
  static Server server;
  // Half of the inputs are headers and body of a request that is one.
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  std::string bytes(input);
  if (size > 0 && data[0] % 2 == 0) {
    bytes = "POST /json HTTP/1.1\r\nHost: localhost\r\n" + std::string(input.substr(1));
  }
  const std::string reply = exchange(server.port(), bytes);
  if (!reply.empty() && !reply.starts_with("HTTP/1.1 ")) std::abort();
  if (reply.starts_with("HTTP/1.1 500")) std::abort();
  return 0;
}
