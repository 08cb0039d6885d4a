#include "comm/control_sockets.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <random>
#include <utility>

namespace heed {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto longest_call = std::chrono::seconds(2);  // to one address
constexpr char accepted = 'k';

constexpr std::string_view white_space = " \t\r\n";

std::string_view without_leading_space(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(white_space), text.size()));
}

// Takes the next word off `text`; empty where there is none.
std::string next_word(std::string_view& text) {
  text = without_leading_space(text);
  const std::size_t end = std::min(text.find_first_of(white_space), text.size());
  std::string word(text.substr(0, end));
  text.remove_prefix(end);
  return word;
}

std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

int milliseconds_until(Deadline deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

bool becomes(int descriptor, short event, Deadline deadline) {
  pollfd wanted{.fd = descriptor, .events = event, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&wanted, 1, milliseconds_until(deadline));
  } while (ready < 0 && errno == EINTR);
  return ready == 1;
}

// A line without its end; nothing where it does not arrive in time.
std::optional<std::string> receive_line(int descriptor, Deadline deadline) {
  constexpr std::size_t longest = 512;
  std::string line;
  while (line.size() < longest && becomes(descriptor, POLLIN, deadline)) {
    char next = 0;
    if (::recv(descriptor, &next, 1, 0) != 1) return std::nullopt;
    if (next == '\n') return line;
    line += next;
  }
  return std::nullopt;
}

std::string random_token() {
  std::random_device source;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", source());
  return token;
}

std::string numeric(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  const int failed =
      ::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return failed != 0 ? "" : text.data();
}

// Of this machine, those that lead only to it first.
std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses{"127.0.0.1"};
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return addresses;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const std::string text =
        numeric(each->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    const bool leads_nowhere = text.empty() || text.find('%') != std::string::npos;
    if (!leads_nowhere && std::ranges::find(addresses, text) == addresses.end()) {
      addresses.push_back(text);
    }
  }
  ::freeifaddrs(all);
  return addresses;
}

Descriptor new_socket(int family) {
  return Descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Bound to any address of a family, and listening; its port.
std::optional<int> listen_at(const Descriptor& socket, int family) {
  sockaddr_storage address{};
  address.ss_family = static_cast<sa_family_t>(family);  // any address, any port
  const socklen_t size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (family == AF_INET6) {
    const int off = 0;
    ::setsockopt(socket.number(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof(address);
  if (::bind(socket.number(), generic, size) != 0 || ::listen(socket.number(), SOMAXCONN) != 0 ||
      ::getsockname(socket.number(), generic, &length) != 0) {
    return std::nullopt;
  }
  return ntohs(family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                  : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

Descriptor connect_to(const std::string& address, int port, Deadline deadline) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return {};
  Descriptor socket = new_socket(found->ai_family);
  const int begun = socket ? ::connect(socket.number(), found->ai_addr, found->ai_addrlen) : -1;
  const bool waits = begun != 0 && errno == EINPROGRESS;
  ::freeaddrinfo(found);
  if (!socket || (begun != 0 && !waits)) return {};
  if (waits && !becomes(socket.number(), POLLOUT, deadline)) return {};
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? std::move(socket) : Descriptor();
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

std::string process_name() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("{}, pid {}", host.data(), ::getpid());
}

std::string MeetingPoint::text() const {
  std::string line = fmt::format("{} {}", token, port);
  for (const std::string& address : addresses) line += " " + address;
  return line;
}

MeetingPoint MeetingPoint::parse(const std::string& text) {
  std::string_view words = text;
  MeetingPoint point;
  point.token = next_word(words);
  point.port = whole_number(next_word(words)).value_or(0);
  for (std::string address = next_word(words); !address.empty(); address = next_word(words)) {
    point.addresses.push_back(address);
  }
  return point;
}

Descriptor listen_anywhere(MeetingPoint& point) {
  for (const int family : {AF_INET6, AF_INET}) {
    Descriptor socket = new_socket(family);
    if (!socket) continue;
    if (const auto port = listen_at(socket, family)) {
      point = {.port = *port, .token = random_token(), .addresses = own_addresses()};
      return socket;
    }
  }
  return {};
}

std::optional<Caller> accept_caller(const Descriptor& listener, const MeetingPoint& point,
                                    Deadline deadline) {
  while (becomes(listener.number(), POLLIN, deadline)) {
    Descriptor connection(
        ::accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) continue;
    const auto line =
        receive_line(connection.number(), std::min(deadline, Clock::now() + longest_call));
    if (!line || !line->starts_with(point.token + " ")) continue;
    std::string_view words = std::string_view(*line).substr(point.token.size() + 1);
    const std::optional<int> rank = whole_number(next_word(words));
    if (!rank) continue;
    Introduction who{.rank = *rank, .name = std::string(without_leading_space(words))};
    if (send_byte(connection, accepted)) return Caller{std::move(connection), std::move(who)};
  }
  return std::nullopt;
}

Descriptor call(const MeetingPoint& point, const Introduction& self, Deadline deadline) {
  const std::string line = fmt::format("{} {} {}\n", point.token, self.rank, self.name);
  for (const std::string& address : point.addresses) {
    const Deadline limit = std::min(deadline, Clock::now() + longest_call);
    Descriptor socket = connect_to(address, point.port, limit);
    if (!socket) continue;
    const auto sent = ::send(socket.number(), line.data(), line.size(), MSG_NOSIGNAL);
    char answer = 0;
    if (sent == static_cast<ssize_t>(line.size()) && becomes(socket.number(), POLLIN, deadline) &&
        ::recv(socket.number(), &answer, 1, 0) == 1 && answer == accepted) {
      return socket;
    }
  }
  return {};
}

bool send_byte(const Descriptor& connection, char byte) {
  const auto sent = ::send(connection.number(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent == 1 || errno == EAGAIN || errno == EINTR;
}

std::optional<std::string> receive_bytes(const Descriptor& connection) {
  std::string bytes;
  std::array<char, 256> piece{};
  for (;;) {
    const auto count = ::recv(connection.number(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (count > 0) {
      bytes.append(piece.data(), static_cast<std::size_t>(count));
    } else if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      return bytes;
    } else {
      return bytes.empty() ? std::nullopt : std::optional(bytes);
    }
  }
}

}  // namespace heed
