// OpenAI's endpoints, and those of operation: health, metrics, properties, tokenization.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/loaded_model.h"
#include "server/context.h"
#include "server/metrics.h"
#include "server/router.h"

namespace heed::server {

// GET /health, /metrics and /openapi.json.
void register_operation(Router& router, const Metrics& metrics);

// What lists of models say of the one that is served.
struct ServedModel {
  std::vector<std::string> names;  // the first is what replies call it
  std::int64_t created = 0;        // when the server began, in seconds since 1970
  std::int64_t vocabulary = 0;
  std::int64_t context = 0;
  std::int64_t channels = 0;
  std::int64_t parameters = 0;
};

// The decoder's figures, where there are two stacks.
ServedModel served(const LoadedModel& model, const std::string& name,
                   const std::vector<std::string>& aliases, std::int64_t created);

// GET /v1/models and /v1/models/{model}.
void register_models(Router& router, ServedModel model);

// The context outlives the router.
void register_service(Router& router, Context& context);

}  // namespace heed::server
