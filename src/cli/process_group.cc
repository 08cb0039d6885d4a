#include "cli/process_group.h"

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <thread>

#include "base/threads.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "comm/group.h"
#include "comm/launch.h"
#include "comm/watch.h"

namespace heed::cli {
namespace {

using namespace std::chrono_literals;

constexpr const char* limit_variable = "HEED_SILENCE_LIMIT";
constexpr double usual_limit = 20;  // seconds

// A process whose exchange fails as another died waits for the watch to say so.
constexpr auto time_to_notice = 300ms;
// A process that another speaks for ends itself, should nothing else end it by then.
constexpr auto time_to_be_ended = 5s;
constexpr unsigned max_seconds_to_abort = 5;

// Seconds of silence after which a process is taken for one that hangs; 0: never.
double silence_limit() {
  const char* const text = std::getenv(limit_variable);
  if (text == nullptr) return usual_limit;
  const std::string_view digits(text);
  double seconds = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seconds);
  require(error == std::errc() && end == digits.data() + digits.size() && seconds >= 0 &&
              seconds <= 1e6,
          ErrorCode::invalid_argument, "{} must be a number of seconds (0: no limit), not '{}'",
          limit_variable, text);
  return seconds;
}

// Calls `late` unless it is destroyed within so many seconds in which this process runs.
class Countdown {
 public:
  Countdown(double seconds, std::function<void()> late)
      : thread_([this, seconds, late = std::move(late)] {
          constexpr auto tick = 100ms;
          std::unique_lock lock(mutex_);
          for (double left = seconds; left > 0; left -= 0.1) {
            if (changed_.wait_for(lock, tick, [&] { return is_over_; })) return;
          }
          late();
        }) {}
  ~Countdown() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Countdown(const Countdown&) = delete;
  Countdown& operator=(const Countdown&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

// Another process may hang before there is a watch. The first speaks, or the next ones if it is
// that one.
void refuse_to_wait(double limit) {
  std::this_thread::sleep_for(launched_rank().value_or(0) * 3s);
  say(fmt::format(
      "process {} of {} waited {:.3g} s for the others to start: one was stopped, or "
      "its machine hangs; {} sets how long to wait",
      launched_rank().value_or(0), launched_processes().value_or(1), limit, limit_variable));
  std::_Exit(work_failed);
}

// The group that this process was started in, while its members watch each other.
class WatchedGroup {
 public:
  WatchedGroup() {
    const int processes = launched_processes().value_or(1);
    const double limit = processes > 1 ? silence_limit() : 0;
    std::optional<Countdown> start;
    if (limit > 0) start.emplace(limit, [limit] { refuse_to_wait(limit); });
    group_ = launched_group();
    if (limit > 0 && !group_->is_alone()) watch(limit);
  }
  // The watch goes on until all members have left the group.
  ~WatchedGroup() {
    is_leaving_ = true;
    group_.reset();
  }
  WatchedGroup(const WatchedGroup&) = delete;
  WatchedGroup& operator=(const WatchedGroup&) = delete;

  Group& group() { return *group_; }

  // Ends all processes for a reason that this one alone knows.
  [[noreturn]] void fail_all(const std::string& message, int status) {
    std::this_thread::sleep_for(time_to_notice);
    if (!watch_ || watch_->may_speak()) {
      say(process_prefix(*group_, group_->rank()) + message);
      end_all(status);
    }
    end_later(status);
  }

 private:
  void watch(double limit) {
    watch_.emplace(*group_, WatchOptions{.patience = limit,
                                         .lost =
                                             [this](const std::string& what) {
                                               say(what +
                                                   "; the last checkpoint is whole, and "
                                                   "--resume goes on from it");
                                               end_all(work_failed);
                                             },
                                         .ended = [] { end_later(work_failed); }});
    if (!watch_->problem().empty() && group_->is_first()) {
      say("note: " + watch_->problem() + ": a process that hangs will not be noticed");
    }
  }

  [[noreturn]] void end_all(int status) {
    std::signal(SIGALRM, SIG_DFL);  // ends this process, and with it the group, should MPI not
    ::alarm(max_seconds_to_abort);
    if (!is_leaving_) group_->abort(status);
    std::_Exit(status);
  }

  [[noreturn]] static void end_later(int status) {
    std::this_thread::sleep_for(time_to_be_ended);
    std::_Exit(status);
  }

  std::optional<Watch> watch_;
  std::unique_ptr<Group> group_;
  std::atomic<bool> is_leaving_{false};
};

}  // namespace

void in_process_group(const std::function<void(Group&)>& work) {
  WatchedGroup watched;
  Group& group = watched.group();
  if (group.is_alone()) return work(group);
  merge_signals();
  share_machine(group.neighbours());
  try {
    work(group);
  } catch (const AgreedError& error) {
    // Before the group is left, where all wait for each other: the first process that ends after
    // that ends the others.
    if (error.speaks()) say(error.what());
    throw AgreedError(error.code(), error.what(), Speaker::another);
  } catch (const Error& error) {
    watched.fail_all(error.what(), exit_status(error.code()));
  } catch (const std::bad_alloc&) {
    watched.fail_all("out of memory", work_failed);
  } catch (const std::exception& error) {
    watched.fail_all(std::string("unexpected failure: ") + error.what(), work_failed);
  }
}

}  // namespace heed::cli
