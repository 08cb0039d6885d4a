#include "server/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <thread>

#include "base/error.h"

namespace heed::server {
namespace {

constexpr int backlog = 512;  // clients that connected and were not yet accepted

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  require(error == 0, ErrorCode::input_output, "cannot listen on '{}': {}", host,
          ::gai_strerror(error));
  return {found, &::freeaddrinfo};
}

void set_option(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

// The listening socket, or -1 with errno set.
int listen_on(const addrinfo& address) {
  const int socket =
      ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return -1;
  // SO_REUSEADDR: ports of ended servers can be reused immediately; ports in use cannot, unlike
  // with SO_REUSEPORT.
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.ai_family == AF_INET6) set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(socket, address.ai_addr, address.ai_addrlen) == 0 && ::listen(socket, backlog) == 0) {
    return socket;
  }
  const int reason = errno;
  ::close(socket);
  errno = reason;
  return -1;
}

int port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  const bool is_six = address.ss_family == AF_INET6;
  return ntohs(is_six ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                      : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

Listener::Listener(const std::string& host, int port, int next_ports) {
  const int last_port = port == 0 ? 0 : std::min(port + next_ports, 65535);
  int reason = 0;
  for (int tried = port; socket_ < 0 && tried <= last_port; ++tried) {
    const Addresses addresses = resolve(host, tried);
    for (const addrinfo* at = addresses.get(); socket_ < 0 && at != nullptr; at = at->ai_next) {
      socket_ = listen_on(*at);
      reason = errno;
    }
  }
  require(socket_ >= 0, ErrorCode::input_output,
          "cannot listen on {}:{} ({}): choose another --host or --port", host, port,
          std::generic_category().message(reason));
  port_ = port_of(socket_);
}

std::optional<int> Listener::accept(std::chrono::milliseconds time) {
  pollfd polled{.fd = socket_, .events = POLLIN, .revents = 0};
  if (::poll(&polled, 1, static_cast<int>(time.count())) <= 0) return std::nullopt;
  const int client = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client < 0) {
    // A client that already disconnected is ignored; without free descriptors, wait for one.
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) std::this_thread::sleep_for(time);
    return std::nullopt;
  }
  set_option(client, IPPROTO_TCP, TCP_NODELAY, 1);
  return client;
}

void Listener::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

}  // namespace heed::server
