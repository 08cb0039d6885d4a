// A server in this process, and clients that behave and that do not.
#pragma once

#include <httplib.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/json.h"
#include "server/serve.h"

namespace heed::server::testing {

// serve() on a free port of this machine, from construction to stop() or destruction.
class TestServer {
 public:
  explicit TestServer(ServeOptions options = {}, const std::string& model = "starter");
  ~TestServer() { stop(); }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  int port() const { return port_; }
  void stop();

  httplib::Client client() const;
  // The reply's JSON; fails the test where the status is another.
  Json post(const std::string& path, const Json& body, int status = 200) const;
  Json get(const std::string& path, int status = 200) const;
  // The events that are streamed in reply; fails the test where they are not.
  std::string stream(const std::string& path, Json body) const;

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> port_{0};
  std::thread thread_;
};

// The starter model and a server of it, each one for the whole program, and a prompt that the model
// goes on with.
const LoadedModel& starter_model();
const TestServer& starter_server();
inline constexpr const char* starter_prompt = "One day the fluffy blue";

// Any router's HTTP server, from construction to stop() or destruction.
class TestHttpServer {
 public:
  TestHttpServer(const Router& router, HttpOptions options, GateOptions gate = {});
  ~TestHttpServer() { stop(); }
  TestHttpServer(const TestHttpServer&) = delete;
  TestHttpServer& operator=(const TestHttpServer&) = delete;

  HttpServer& server() { return *server_; }
  int port() const { return server_->port(); }
  void stop();

 private:
  Gate gate_;
  std::unique_ptr<HttpServer> server_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// What every request needs.
inline const std::string host_field = "Host: localhost\r\n";

// A bare connection. Reading ends after ten seconds at the latest.
class Socket {
 public:
  explicit Socket(int port, int receive_buffer = 0);
  ~Socket() { close(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool send(const std::string& bytes);
  std::string receive(std::size_t most);
  std::string receive_all();  // until the server closes
  void close();

 private:
  int descriptor_;
};

// The "data:" objects of a streamed reply, without [DONE]; fails the test where that is missing.
std::vector<Json> events(const std::string& body);

// The text of a stream's choice.
std::string streamed_text(const std::string& body, std::int64_t index = 0);

// Waits until `condition` holds, for as many seconds at most; whether it does.
bool eventually(const std::function<bool()>& condition, double seconds = 10);

}  // namespace heed::server::testing
