#include "server/test_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

namespace heed::server::testing {

TestServer::TestServer(ServeOptions options, const std::string& model) {
  // cpp-httplib's client writes to connections that the server has closed.
  std::signal(SIGPIPE, SIG_IGN);
  options.http.port = 0;
  thread_ = std::thread([this, options, loaded = load_model(model)]() mutable {
    serve(std::move(loaded), options, &stop_, [this](const std::string& address) {
      port_ = std::stoi(address.substr(address.rfind(':') + 1));
    });
  });
  while (port_ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void TestServer::stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

httplib::Client TestServer::client() const {
  httplib::Client client("127.0.0.1", port_);
  client.set_read_timeout(600);  // under ThreadSanitizer on a busy machine replies take minutes
  return client;
}

Json TestServer::post(const std::string& path, const Json& body, int status) const {
  const auto reply = client().Post(path, body.dump(), "application/json");
  if (!reply) {
    ADD_FAILURE() << path << ": no reply to " << body.dump();
    return {};
  }
  EXPECT_EQ(reply->status, status) << path << " " << body.dump() << "\n" << reply->body;
  return parse_json(reply->body, path);
}

Json TestServer::get(const std::string& path, int status) const {
  const auto reply = client().Get(path);
  if (!reply) {
    ADD_FAILURE() << path << ": no reply";
    return {};
  }
  EXPECT_EQ(reply->status, status) << path << "\n" << reply->body;
  return parse_json(reply->body, path);
}

std::string TestServer::stream(const std::string& path, Json body) const {
  body["stream"] = true;
  const auto reply = client().Post(path, body.dump(), "application/json");
  if (!reply) {
    ADD_FAILURE() << path << ": no reply to " << body.dump();
    return "";
  }
  EXPECT_EQ(reply->status, 200) << reply->body;
  EXPECT_EQ(reply->get_header_value("Content-Type"), "text/event-stream");
  return reply->body;
}

const LoadedModel& starter_model() {
  static const LoadedModel model = load_model("starter");
  return model;
}

const TestServer& starter_server() {
  static const TestServer server;
  return server;
}

TestHttpServer::TestHttpServer(const Router& router, HttpOptions options, GateOptions gate)
    : gate_(std::move(gate)) {
  options.port = 0;
  server_ = std::make_unique<HttpServer>(router, gate_, options);
  thread_ = std::thread([this] { server_->run(&stop_); });
}

void TestHttpServer::stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

Socket::Socket(int port, int receive_buffer) : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
  if (receive_buffer > 0) {
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  const timeval timeout{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
}

bool Socket::send(const std::string& bytes) {
  return ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

std::string Socket::receive(std::size_t most) {
  std::string bytes(most, '\0');
  const ssize_t count = ::recv(descriptor_, bytes.data(), most, 0);
  bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return bytes;
}

std::string Socket::receive_all() {
  std::string all;
  for (std::string part; !(part = receive(65536)).empty();) all += part;
  return all;
}

void Socket::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

std::vector<Json> events(const std::string& body) {
  std::vector<Json> found;
  bool done = false;
  for (std::size_t begin = 0; begin < body.size();) {
    const std::size_t end = std::min(body.find("\n\n", begin), body.size());
    std::string event = body.substr(begin, end - begin);
    begin = end + 2;
    EXPECT_TRUE(event.starts_with("data: ")) << event;
    event.erase(0, 6);
    done = event == "[DONE]";
    if (!done) found.push_back(parse_json(event, "event"));
  }
  EXPECT_TRUE(done) << body.substr(0, 1000);
  return found;
}

std::string streamed_text(const std::string& body, std::int64_t index) {
  std::string text;
  for (const Json& event : events(body)) {
    for (const Json& choice : event.value("choices", Json::array())) {
      if (choice["index"] == index) text += choice["text"].get<std::string>();
    }
  }
  return text;
}

bool eventually(const std::function<bool()>& condition, double seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace heed::server::testing
