// Moves the exchanges of a transport on while this process computes: a transport moves bytes only
// in calls of its functions, and the system's buffers between two processes hold too little for
// what arrives from one call to the next.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "comm/transport.h"

namespace heed {

class Mover {
 public:
  // Borrows both. The lock is held by whoever calls functions of the transport.
  Mover(const HeedTransport& transport, std::mutex& lock);
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;
  ~Mover();

  // Whether anything is under way. Called with the lock.
  void set_busy(bool is_busy);

 private:
  void run();

  const HeedTransport& transport_;
  std::mutex& lock_;
  std::condition_variable changed_;
  bool is_busy_ = false;  // guarded by the lock, as is the next
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace heed
