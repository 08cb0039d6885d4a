// Tries a request again when it failed for a reason that may pass.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/progress.h"
#include "download/http_client.h"

namespace heed {

struct RetryOptions {
  int most_tries = 6;                               // in a row without progress
  std::chrono::milliseconds first_delay{500};       // doubled at each try
  std::chrono::milliseconds longest_delay{16'000};  // of those that are not asked for
  std::chrono::seconds longest_retry_after{300};    // a server that asks for more is not waited for
  std::function<void(std::chrono::milliseconds)> pause;  // waits; empty: by the clock
};

// Counts the tries of one download.
class Retries {
 public:
  // `what` is downloaded, for messages. `options` outlives this object.
  Retries(const RetryOptions& options, std::string what, StopFlag stop);

  // Returns after the time to wait if another try may succeed: the transfer broke off, or the
  // status is 408, 429 or 5xx. Otherwise, and after the last try, throws Error{input_output}; and
  // Error{interrupted} when it is stopped.
  void wait(const HttpReply& reply);

  // A try brought something: the next failure is the first again.
  void restart() { failures_ = 0; }

 private:
  void pause(std::chrono::milliseconds delay) const;

  const RetryOptions& options_;
  std::string what_;
  StopFlag stop_;
  int failures_ = 0;
};

}  // namespace heed
