// Work beside the computing thread, piece by piece, that gives way to it: before every piece it
// waits for the jobs posted until then. It has a thread of its own; in a browser the pieces are
// jobs themselves (browser/background.cc).
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "server/compute.h"

namespace heed::server {

class Background {
 public:
  enum class Next {
    piece,  // another one
    wake,   // another one, after wake()
    end,
  };
  using Piece = std::function<Next()>;

  explicit Background(Compute& compute) : compute_(compute) {}  // borrowed
  ~Background() { join(); }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Calls piece() until it says end; it must not throw. Only once what was started before has
  // ended, or is about to. Throws std::system_error where no thread can be started.
  void start(Piece piece);
  void wake();
  void join();  // waits for the end

  // Waits on `changed`, whose mutex `lock` holds, until has_come() or for some seconds.
  void wait_for(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                const std::function<bool()>& has_come);

 private:
  void work(const Piece& piece);

  Compute& compute_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  std::thread thread_;
  Piece piece_;  // in a browser: what is left of it; empty: nothing
};

}  // namespace heed::server
