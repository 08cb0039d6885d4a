#include "comm/watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

namespace heed {
namespace {

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

}  // namespace heed
