// `heed serve` and `heed explore`: the only header of this folder that the command line includes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "engine/loaded_model.h"
#include "server/explorer/options.h"
#include "server/gate.h"
#include "server/http_server.h"
#include "server/scheduler.h"

namespace heed::server {

enum class Face {
  service,   // OpenAI's endpoints, and those of operation
  explorer,  // those, the page and its own endpoints
};

struct ServeOptions {
  Face face = Face::service;
  HttpOptions http{};
  GateOptions gate{};
  SchedulerOptions scheduler{};
  // Names of the model. Replies carry the first; none: its directory's name.
  std::vector<std::string> aliases{};
  std::string chat_template;  // a built-in name or a file; empty: the model's own, else "plain"
  std::function<void(const std::string& message)> warn{};  // told what the user should know
  ExplorerOptions explorer{};
};

// Serves the model until `stop` is set, a translator with endpoints of pairs of texts; `listening`
// is told the address once connections are accepted. Throws Error{input_output} where the address
// cannot be had, and what choose_chat_template throws.
void serve(LoadedModel model, const ServeOptions& options, StopFlag stop,
           const std::function<void(const std::string& address)>& listening);

}  // namespace heed::server
