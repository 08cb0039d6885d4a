// Shared by all handlers; lives as long as the server.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "server/chat_template.h"
#include "server/completion_request.h"
#include "server/compute.h"
#include "server/metrics.h"
#include "server/scheduler.h"
#include "server/serve.h"
#include "server/translations.h"

namespace heed::server {

struct Context {
  const LoadedModel& model;
  const ServeOptions& options;
  std::string name;  // what replies call the model
  Compute& compute;
  Metrics& metrics;
  Scheduler& scheduler;
  std::int64_t created;                // when the server began, in seconds since 1970
  std::vector<std::string> aliases{};  // further names of the model
  ChatTemplate chat_template = ChatTemplate::built_in("plain");
  HeldTranslator* translator = nullptr;  // beside the model; none: the server does not translate
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();

  CompletionLimits completion_limits() const {
    return {.prompts = {.tokens = scheduler.context()}, .sequences = options.scheduler.waiting};
  }
};

}  // namespace heed::server
