// POST /v1/embeddings.
#pragma once

#include "formats/pooling.h"
#include "server/completion_request.h"
#include "server/compute.h"
#include "server/metrics.h"
#include "server/router.h"

namespace heed::server {

// What it needs.
struct EmbeddingService {
  const LoadedModel& model;  // of one text
  Compute& compute;
  Metrics& metrics;
  PromptLimits limits;                        // of the texts
  TokenPooling pooling = TokenPooling::mean;  // where a request names none
};

void register_embeddings(Router& router, EmbeddingService service);

}  // namespace heed::server
