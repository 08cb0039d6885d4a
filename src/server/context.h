// What all handlers share. It lives as long as the server.
#pragma once

#include <chrono>
#include <string>

#include "server/completion_request.h"
#include "server/compute.h"
#include "server/metrics.h"
#include "server/scheduler.h"
#include "server/serve.h"

namespace heed::server {

struct Context {
  const LoadedModel& model;
  const ServeOptions& options;
  std::string name;  // what the model is called
  Compute& compute;
  Metrics& metrics;
  Scheduler& scheduler;
  std::int64_t created;  // when the server began, in seconds since 1970
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();

  CompletionLimits completion_limits() const {
    return {.prompts = {.tokens = scheduler.context()},
            .max_tokens = scheduler.context(),
            .sequences = options.scheduler.waiting};
  }
};

}  // namespace heed::server
