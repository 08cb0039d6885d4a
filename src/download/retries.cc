#include "download/retries.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/error.h"

namespace heed {
namespace {

bool may_pass(const HttpReply& reply) {
  return !reply.failure.empty() || reply.status == 408 || reply.status == 429 ||
         (reply.status >= 500 && reply.status <= 599);
}

// Why a try failed, such as "the server answers 503".
std::string failure_text(const HttpReply& reply) {
  if (!reply.failure.empty()) return reply.failure;
  return fmt::format("the server answers {}", reply.status);
}

}  // namespace

Retries::Retries(const RetryOptions& options, std::string what, StopFlag stop)
    : options_(options), what_(std::move(what)), stop_(stop) {}

void Retries::wait(const HttpReply& reply) {
  ++failures_;
  require(may_pass(reply), ErrorCode::input_output, "cannot download {}: {}", what_,
          failure_text(reply));
  require(failures_ < options_.most_tries, ErrorCode::input_output,
          "cannot download {} after {} tries: {}; the same command continues where this one ended",
          what_, failures_, failure_text(reply));
  if (reply.retry_after) {
    require(*reply.retry_after <= options_.longest_retry_after, ErrorCode::input_output,
            "cannot download {} now: {} and asks to wait for {} seconds; try again then", what_,
            failure_text(reply), reply.retry_after->count());
    return pause(*reply.retry_after);
  }
  std::chrono::milliseconds delay = options_.first_delay;
  for (int i = 1; i < failures_ && delay < options_.longest_delay; ++i) delay *= 2;
  pause(std::min(delay, options_.longest_delay));
}

void Retries::pause(std::chrono::milliseconds delay) const {
  if (options_.pause) return options_.pause(delay);
  constexpr std::chrono::milliseconds between_stops{100};
  const auto end = std::chrono::steady_clock::now() + delay;
  for (auto now = end - delay; now < end; now = std::chrono::steady_clock::now()) {
    require(!stop_requested(stop_), ErrorCode::interrupted, "stopped while waiting to try again");
    std::this_thread::sleep_for(
        std::min(between_stops, std::chrono::ceil<std::chrono::milliseconds>(end - now)));
  }
}

}  // namespace heed
