// Downloads of published models that the page asks for, one at a time, beside all other work.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "base/json.h"
#include "base/progress.h"
#include "server/explorer/options.h"

namespace heed::server {

// Any thread may call it.
class Downloads {
 public:
  // Borrowed.
  explicit Downloads(const ExplorerOptions& options) : options_(options) {}
  ~Downloads();  // cancels
  Downloads(const Downloads&) = delete;
  Downloads& operator=(const Downloads&) = delete;

  // {"name", "state", "doing", "done", "total", "error"} of the last one; null: there was none.
  OrderedJson describe() const;

  // The one that runs; empty: none does.
  std::string running() const;

  // Starts a download, or goes on with what an earlier one left; the one that runs already goes on.
  // Throws HttpError{403} where downloads are not allowed, Error{not_found} for a model that is
  // not among published_models(), and Error{conflict} while another one runs.
  void start(const std::string& name);

  // Ends it, and waits for its end, some seconds at most. What it has stays, for the next one.
  // Throws Error{conflict} where it does not run.
  void cancel(const std::string& name);

 private:
  enum class State { none, running, finished, cancelled, failed };
  static const char* state_name(State state);
  void work(const std::string& name);
  State pull(const std::string& name, Json& failure);
  void report(Progress progress);

  const ExplorerOptions& options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::none;
  std::string name_;
  Progress progress_{};
  Json failure_ = nullptr;  // as the body of an error reply has it
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace heed::server
