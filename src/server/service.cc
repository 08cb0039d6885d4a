#include "server/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "heed/version.h"
#include "server/completions.h"
#include "server/embeddings.h"
#include "server/exchange.h"
#include "server/fields.h"
#include "server/openapi.h"
#include "server/sampling_fields.h"
#include "server/tokenization.h"
#include "server/translations.h"

namespace heed::server {
namespace {

OrderedJson model_json(const ServedModel& model, const std::string& name) {
  return {{"id", name},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "heed"},
          {"meta",
           {{"n_vocab", model.vocabulary},
            {"n_ctx_train", model.context},
            {"n_embd", model.channels},
            {"n_params", model.parameters}}}};
}

Reply list_models(const ServedModel& model) {
  OrderedJson data = OrderedJson::array();
  for (const std::string& name : model.names) data.push_back(model_json(model, name));
  return json_reply({{"object", "list"}, {"data", std::move(data)}});
}

Reply describe_model(const Request& request, const ServedModel& model) {
  const std::string& name = request.in_path("model");
  if (std::ranges::find(model.names, name) == model.names.end()) {
    return error_reply(
        404, ErrorDetails{.message = fmt::format("there is no model '{}' here, only '{}'",
                                                 name.substr(0, 100), model.names.front()),
                          .param = "model",
                          .code = "model_not_found"});
  }
  return json_reply(model_json(model, name));
}

Reply props(const Context& context) {
  const CompletionLimits limits = context.completion_limits();
  OrderedJson defaults = sampling_json(SamplingOptions{});
  defaults["max_tokens"] = default_max_tokens;
  return json_reply({{"default_generation_settings",
                      {{"n_ctx", context.scheduler.context()}, {"params", std::move(defaults)}}},
                     {"sampling_options", sampling_table_json()},
                     {"chat_template", context.chat_template.name()},
                     {"total_slots", context.options.scheduler.parallel},
                     {"model_path", context.name},
                     {"build_info", std::string("heed ") + version},
                     {"limits",
                      {{"prompt_tokens", limits.prompts.tokens},
                       {"prompts", limits.prompts.most},
                       {"choices", limits.choices},
                       {"body_bytes", context.options.gate.max_body_bytes},
                       {"connections", context.options.http.max_connections},
                       {"request_seconds", context.options.http.request_time.count()}}}});
}

// With the translator that is held beside the model.
void add_translations(Router& router, const Context& context) {
  if (HeldTranslator* const held = context.translator) {
    return register_translations(router,
                                 of_held(*held, context.compute, context.metrics, context.created));
  }
  router.add("POST", "/v1/translations", [&context](const Request&) {
    return error_reply(422, fmt::format("'{}' continues texts and does not translate: POST "
                                        "/v1/completions, or serve a translator",
                                        context.name));
  });
}

}  // namespace

void register_operation(Router& router, const Metrics& metrics) {
  router.add("GET", "/health", [](const Request&) { return json_reply({{"status", "ok"}}); });
  router.add("GET", "/metrics", [&metrics](const Request&) {
    return text_reply(metrics.text(), "text/plain; version=0.0.4; charset=utf-8");
  });
  router.add("GET", "/openapi.json", [](const Request&) {
    return text_reply(std::string(openapi_document()), "application/json");
  });
}

void register_models(Router& router, ServedModel model) {
  const auto served = std::make_shared<const ServedModel>(std::move(model));
  router.add("GET", "/v1/models", [served](const Request&) { return list_models(*served); });
  router.add("GET", "/v1/models/{model...}",
             [served](const Request& request) { return describe_model(request, *served); });
}

ServedModel served(const LoadedModel& model, const std::string& name,
                   const std::vector<std::string>& aliases, std::int64_t created) {
  const StackSpecification& stack = model.architecture().decoder();
  ServedModel result{.names = {name},
                     .created = created,
                     .vocabulary = stack.vocabulary_size,
                     .context = stack.context,
                     .channels = stack.channels,
                     .parameters = model.transformer.parameters().size()};
  result.names.insert(result.names.end(), aliases.begin(), aliases.end());
  return result;
}

void register_service(Router& router, Context& context) {
  register_operation(router, context.metrics);
  register_models(router, served(context.model, context.name, context.aliases, context.created));
  router.add("GET", "/props", [&context](const Request&) { return props(context); });
  register_tokenization(router, context.model);
  router.add("POST", "/v1/completions",
             [&context](const Request& request) { return complete(request, context); });
  router.add("POST", "/v1/chat/completions",
             [&context](const Request& request) { return complete_chat(request, context); });
  register_embeddings(router, {.model = context.model,
                               .compute = context.compute,
                               .metrics = context.metrics,
                               .limits = context.completion_limits().prompts});
  add_translations(router, context);
}

}  // namespace heed::server
