// What all handlers share. It lives as long as the server.
#pragma once

#include <chrono>

#include "server/compute.h"
#include "server/serve.h"

namespace heed::server {

struct Context {
  const LoadedModel& model;
  const ServeOptions& options;
  Compute& compute;
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
};

}  // namespace heed::server
