#include "server/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "server/exchange.h"
#include "server/openapi.h"

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
    return error_reply(404, {.message = fmt::format("there is no model '{}' here, only '{}'",
                                                    name.substr(0, 100), model.names.front()),
                             .param = "model",
                             .code = "model_not_found"});
  }
  return json_reply(model_json(model, name));
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

}  // namespace heed::server
