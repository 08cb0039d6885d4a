#include "server/documented_queries.h"

#include "base/json.h"
#include "server/http_syntax.h"
#include "server/openapi.h"

namespace heed::server {
namespace {

// What {"$ref": "#/components/parameters/unit"} stands for.
const Json& resolved(const Json& document, const Json& parameter) {
  const auto reference = parameter.find("$ref");
  if (reference == parameter.end()) return parameter;
  return document.at(Json::json_pointer(reference->get<std::string>().substr(1)));
}

Router::QueryNames query_names(const Json& document, const Json& operation) {
  Router::QueryNames names;
  for (const Json& listed : operation.value("parameters", Json::array())) {
    const Json& parameter = resolved(document, listed);
    if (parameter.at("in") == "query") names.push_back(parameter.at("name"));
  }
  return names;
}

}  // namespace

void refuse_undocumented_queries(Router& router) {
  const Json document = parse_json(openapi_document(), "openapi.json");
  const Json& paths = document.at("paths");
  for (const Router::Route& route : router.routes()) {
    if (!route.pattern.starts_with("/api/")) continue;
    const Json& operation = paths.at(route.pattern).at(lower_case(route.method));
    router.allow_queries(route, query_names(document, operation));
  }
}

}  // namespace heed::server
