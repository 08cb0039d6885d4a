// Whether the processes of a group are alive. A thread of each tells the first one every moment
// that it is, over a connection of its own, whatever the process computes meanwhile: one that is
// slow is not taken for one that hangs. What ends a group is said by one of its processes.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/group.h"

namespace heed {

// TCP connections of a few bytes between the processes of a group: from each to the first.

// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

using Deadline = std::chrono::steady_clock::time_point;

// Who is at the other end.
struct Introduction {
  int rank = 0;
  std::string name;  // "node7, pid 4711"
};

// Of this process.
std::string process_name();

// Where the first process waits for the others.
struct MeetingPoint {
  int port = 0;
  std::string token;                   // a secret of the group
  std::vector<std::string> addresses;  // of its machine, in numbers

  std::string text() const;
  static MeetingPoint parse(const std::string& text);
};

// Listens at a port that the system chooses, at all addresses; an empty descriptor where it cannot.
Descriptor listen_anywhere(MeetingPoint& point);

// The next process that knows the token; nothing where none comes before the deadline.
struct Caller {
  Descriptor connection;
  Introduction who;
};
std::optional<Caller> accept_caller(const Descriptor& listener, const MeetingPoint& point,
                                    Deadline deadline);

// An empty descriptor where no address leads to the meeting point.
Descriptor call(const MeetingPoint& point, const Introduction& self, Deadline deadline);

// Sends a byte without waiting. False where the other end is gone.
bool send_byte(const Descriptor& connection, char byte);

// What has arrived; nothing where the other end is gone.
std::optional<std::string> receive_bytes(const Descriptor& connection);

struct WatchOptions {
  double patience = 20;  // seconds of silence after which a process is taken for one that hangs
  // Called in a thread of the watch, in one process at most: what became of another. It ends all.
  std::function<void(const std::string& what)> lost;
  // Called in a thread of the watch: another process says why the group ends, and ends it.
  std::function<void()> ended;
};

class Watch {
 public:
  // Called by all members. Where they cannot be connected, problem() says so, and nobody is
  // watched.
  Watch(Group& group, WatchOptions options);
  ~Watch();  // takes leave of the others
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  const std::string& problem() const { return problem_; }

  // For a process that is about to end the group: whether it is the first, and says why.
  bool may_speak();

 private:
  using Clock = std::chrono::steady_clock;

  struct Peer {
    Descriptor connection;
    Introduction who;
    double silence = 0;  // seconds, of those in which this process ran
    bool has_left = false;
  };
  enum class Verdict { none, speak, listen };

  bool is_hub() const { return rank_ == 0; }
  void connect(Group& group);
  void work();
  void wait_for_bytes();
  void hear(Peer& peer);
  void heed_byte(Peer& peer, char byte);
  void beat();
  void grow_silence(double seconds);
  void lose(Peer& peer, const std::string& how);
  void answer_claim(Peer& peer);
  void end_others(const Peer* speaker);
  void set_verdict(Verdict verdict);

  const WatchOptions options_;
  int rank_ = 0;
  int size_ = 1;
  std::string problem_;
  std::vector<Peer> peers_;  // of the first process all others, of the others the first
  std::mutex mutex_;         // of what follows
  std::condition_variable changed_;
  bool is_spoken_ = false;           // in the first process: someone has been told to speak
  Verdict verdict_ = Verdict::none;  // in the others
  std::atomic<bool> is_leaving_{false};
  Descriptor wake_in_, wake_out_;
  std::thread thread_;
};

}  // namespace heed
