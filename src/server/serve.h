// What `heed serve` and `heed explore` do: the one door of this folder that the command line uses.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/progress.h"
#include "engine/loaded_model.h"
#include "server/explorer/options.h"
#include "server/gate.h"
#include "server/http_server.h"
#include "server/scheduler.h"

namespace heed::server {

enum class Face {
  service,   // OpenAI's endpoints, and those for whoever runs a server
  explorer,  // those, the page and what it asks for
};

struct ServeOptions {
  Face face = Face::service;
  HttpOptions http{};
  GateOptions gate{};
  SchedulerOptions scheduler{};
  std::string alias;  // what the model is called; empty: its directory's name
  ExplorerOptions explorer{};
};

// Serves the model until `stop` is set; `listening` is told the address once it can be asked.
// Throws Error{input_output} where the address cannot be had.
void serve(LoadedModel model, const ServeOptions& options, StopFlag stop,
           const std::function<void(const std::string& address)>& listening);

}  // namespace heed::server
