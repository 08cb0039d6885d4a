#include "comm/watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
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

constexpr auto max_call = std::chrono::seconds(2);  // to one address
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

using namespace std::chrono_literals;

// What a connection carries, a byte each.
constexpr char alive = 'a';
constexpr char leave = 'l';   // the sender ends as it should
constexpr char claim = 'c';   // to the first process: may I speak?
constexpr char speak = 's';   // yes
constexpr char listen = 'n';  // another speaks; the group ends

constexpr auto time_to_connect = 10s;
constexpr auto time_to_answer = 2s;
// mpirun that ends a group kills its processes one after the other: those that see that of another
// and are alive after so long see something else.
constexpr auto time_to_be_killed = 100ms;
// Without the first process, the others speak one after the other, until the group has ended.
constexpr auto turn = 3s;
constexpr int turns = 4;

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// A thread that no signal is delivered to.
template <class Work>
std::thread quiet_thread(Work&& work) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::forward<Work>(work));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

Watch::Watch(Group& group, WatchOptions options)
    : options_(std::move(options)), rank_(group.rank()), size_(group.size()) {
  if (size_ == 1) return;
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
    wake_out_ = Descriptor(ends[0]);
    wake_in_ = Descriptor(ends[1]);
  }
  connect(group);
  if (problem_.empty()) thread_ = quiet_thread([this] { work(); });
}

void Watch::connect(Group& group) {
  MeetingPoint point;
  Descriptor listener;
  if (is_hub()) listener = listen_anywhere(point);
  const std::string name = of_first(group, process_name());
  point = MeetingPoint::parse(of_first(group, is_hub() ? point.text() : ""));
  const Deadline deadline = Clock::now() + time_to_connect;
  if (point.port != 0 && is_hub()) {
    while (std::ssize(peers_) + 1 < size_) {
      auto caller = accept_caller(listener, point, deadline);
      if (!caller) break;
      peers_.push_back({std::move(caller->connection), std::move(caller->who)});
    }
  } else if (point.port != 0) {
    Descriptor connection = call(point, {rank_, process_name()}, deadline);
    if (connection) peers_.push_back({std::move(connection), {0, name}});
  }
  const bool is_connected =
      static_cast<bool>(wake_in_) && std::ssize(peers_) == (is_hub() ? size_ - 1 : 1);
  const std::vector<double> all = gather(group, is_connected ? 1.0 : 0.0);
  // The first process lacks every one that another lacks.
  const auto missing = std::find(all.begin() + 1, all.end(), 0.0);
  if (is_connected && missing == all.end()) return;
  problem_ = missing == all.end()
                 ? "processes could not be connected over TCP"
                 : fmt::format("process {} could not be connected to process 0 over TCP",
                               missing - all.begin());
}

Watch::~Watch() {
  if (!thread_.joinable()) return;
  is_leaving_ = true;
  for (const Peer& peer : peers_) send_byte(peer.connection, leave);
  const char byte = 0;
  [[maybe_unused]] const auto written = ::write(wake_in_.number(), &byte, 1);
  thread_.join();
}

bool Watch::may_speak() {
  std::unique_lock lock(mutex_);
  if (!thread_.joinable()) return true;
  if (is_hub()) {
    if (is_spoken_) return false;
    is_spoken_ = true;
    end_others(nullptr);
    return true;
  }
  if (verdict_ == Verdict::none) send_byte(peers_.front().connection, claim);
  changed_.wait_for(lock, time_to_answer, [&] { return verdict_ != Verdict::none; });
  return verdict_ != Verdict::listen;
}

// Silence is counted in time in which this process runs: one that was stopped, with all others or
// alone, blames nobody for it.
void Watch::work() {
  const double most = std::min(1.0, options_.patience / 4);
  Clock::time_point last = Clock::now(), last_beat = last;
  while (!is_leaving_) {
    wait_for_bytes();
    for (Peer& peer : peers_) {
      if (!peer.has_left && !is_leaving_) hear(peer);
    }
    const Clock::time_point now = Clock::now();
    grow_silence(std::min(seconds(now - last), most));
    last = now;
    if (seconds(now - last_beat) >= most / 2) {
      beat();
      last_beat = now;
    }
  }
}

void Watch::wait_for_bytes() {
  std::vector<pollfd> wanted{{wake_out_.number(), POLLIN, 0}};
  for (const Peer& peer : peers_) {
    if (!peer.has_left) wanted.push_back({peer.connection.number(), POLLIN, 0});
  }
  ::poll(wanted.data(), wanted.size(),
         static_cast<int>(std::clamp(1000 * options_.patience / 8, 10.0, 500.0)));
}

void Watch::hear(Peer& peer) {
  const auto bytes = receive_bytes(peer.connection);
  if (!bytes) return lose(peer, "ended without a word: it was killed, or it crashed");
  for (const char byte : *bytes) {
    peer.silence = 0;
    heed_byte(peer, byte);
  }
}

void Watch::heed_byte(Peer& peer, char byte) {
  if (byte == leave) peer.has_left = true;
  if (byte == claim) answer_claim(peer);
  if (byte == speak) set_verdict(Verdict::speak);
  if (byte == listen) {
    set_verdict(Verdict::listen);
    peer.has_left = true;
    options_.ended();
  }
}

void Watch::set_verdict(Verdict verdict) {
  const std::lock_guard lock(mutex_);
  is_spoken_ = true;
  if (verdict_ == Verdict::none) verdict_ = verdict;
  changed_.notify_all();
}

void Watch::beat() {
  for (Peer& peer : peers_) {
    if (!peer.has_left) send_byte(peer.connection, alive);  // whether it is gone is heard
  }
}

void Watch::grow_silence(double seconds) {
  for (Peer& peer : peers_) {
    if (peer.has_left || is_leaving_) continue;
    peer.silence += seconds;
    if (peer.silence < options_.patience) continue;
    lose(peer, fmt::format("has given no sign of life for {:.3g} s: it was stopped, or its machine "
                           "hangs",
                           options_.patience));
  }
}

void Watch::lose(Peer& peer, const std::string& how) {
  peer.has_left = true;
  if (is_leaving_) return;
  std::this_thread::sleep_for(time_to_be_killed);
  if (is_hub()) {
    const std::lock_guard lock(mutex_);
    if (is_spoken_) return;
    is_spoken_ = true;
    end_others(nullptr);
  } else {
    send_byte(peer.connection, listen);  // should it go on after all
    {
      const std::lock_guard lock(mutex_);
      if (verdict_ != Verdict::none) return;  // it speaks of something else
      verdict_ = Verdict::listen;
      changed_.notify_all();
    }
    const int before = rank_ - 1;
    std::this_thread::sleep_for(std::min(before, turns) * turn);
    if (before >= turns) return options_.ended();
  }
  options_.lost(fmt::format("process {} of {} ({}) {}", peer.who.rank, size_, peer.who.name, how));
}

void Watch::answer_claim(Peer& peer) {
  {
    const std::lock_guard lock(mutex_);
    if (is_spoken_) return;  // it has been told
    is_spoken_ = true;
    send_byte(peer.connection, speak);
    end_others(&peer);
  }
  peer.has_left = true;
  options_.ended();
}

// Called with the mutex held, in the first process. Also a process that was stopped hears of it, as
// soon as it goes on: mpirun lets it go on to end it.
void Watch::end_others(const Peer* speaker) {
  for (const Peer& peer : peers_) {
    if (&peer != speaker) send_byte(peer.connection, listen);
  }
}

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
        receive_line(connection.number(), std::min(deadline, Clock::now() + max_call));
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
    const Deadline limit = std::min(deadline, Clock::now() + max_call);
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
