// A server of an encoder alone: vectors of texts, and tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/loaded_model.h"
#include "formats/pooling.h"
#include "server/compute.h"
#include "server/metrics.h"
#include "server/router.h"
#include "server/translations.h"

namespace heed::server {

// Shared by all handlers; lives as long as the server.
struct EncoderContext {
  const LoadedModel& encoder;
  std::vector<std::string> aliases;  // further names
  Compute& compute;
  Metrics& metrics;
  std::int64_t created;  // when the server began, in seconds since 1970
  std::int64_t context;  // tokens of a text
  TokenPooling pooling = TokenPooling::mean;
  HeldTranslator* translator = nullptr;  // beside the model; none: the server does not translate
};

// The routes of register_service(); those that need the logits of a next token refuse, and say why.
void register_encoder_service(Router& router, EncoderContext& context);

}  // namespace heed::server
