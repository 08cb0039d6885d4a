#include "server/encoder_service.h"

#include <fmt/format.h>

#include <utility>

#include "server/embeddings.h"
#include "server/exchange.h"
#include "server/service.h"
#include "server/tokenization.h"

namespace heed::server {
namespace {

// Why an encoder does not answer.
Reply refusal(const EncoderContext& context, const std::string& path) {
  return error_reply(
      400, ErrorDetails{.message = fmt::format(
                            "'{}' is an encoder: it has no logits of a next token, which {} needs, "
                            "since every token attends to those after it; POST /v1/embeddings",
                            context.encoder.name, path),
                        .param = "model",
                        .code = "unsupported_model"});
}

}  // namespace

void register_encoder_service(Router& router, EncoderContext& context) {
  register_operation(router, context.metrics);
  register_models(router,
                  served(context.encoder, context.encoder.name, context.aliases, context.created));
  register_tokenization(router, context.encoder);
  register_embeddings(router, {.model = context.encoder,
                               .compute = context.compute,
                               .metrics = context.metrics,
                               .limits = {.tokens = context.context},
                               .pooling = context.pooling});
  for (const auto& [method, path] :
       {std::pair("GET", "/props"), std::pair("POST", "/v1/completions"),
        std::pair("POST", "/v1/chat/completions")}) {
    const std::string asked = path;  // Clang 14 does not capture structured bindings
    router.add(method, path, [&context, asked](const Request&) { return refusal(context, asked); });
  }
  if (HeldTranslator* const held = context.translator) {
    return register_translations(router,
                                 of_held(*held, context.compute, context.metrics, context.created));
  }
  router.add("POST", "/v1/translations", [&context](const Request&) {
    return error_reply(
        422, fmt::format("'{}' is an encoder and does not translate: POST /v1/embeddings, or serve "
                         "a translator",
                         context.encoder.name));
  });
}

}  // namespace heed::server
