// Whether the processes of a group are alive. A thread of each tells the first one every moment
// that it is, over a connection of its own, whatever the process computes meanwhile: one that is
// slow is not taken for one that hangs. What ends a group is said by one of its processes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/control_sockets.h"
#include "comm/group.h"

namespace heed {

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
