#include "server/openapi.h"

#include "base/json.h"
#include "base/text.h"
#include "server/sampling_fields.h"

namespace heed::server {
namespace {

constexpr const char* sampling_placeholder = "x-sampling";

// `shared`: what each placeholder stands for. In a list it stands for names of required fields, or
// for parameters of a query.
OrderedJson expanded(const OrderedJson& json, const OrderedJson& shared) {
  if (!json.is_structured()) return json;
  OrderedJson whole = json.is_array() ? OrderedJson::array() : OrderedJson::object();
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      if (shared.contains(key)) {
        whole.update(expanded(shared[key], shared));
      } else {
        whole[key] = expanded(value, shared);
      }
    }
    return whole;
  }
  for (const OrderedJson& item : json) {
    const bool is_name = item == sampling_placeholder;
    if (!is_name && !(item.is_object() && item.contains(sampling_placeholder))) {
      whole.push_back(expanded(item, shared));
      continue;
    }
    for (const auto& [name, schema] : shared[sampling_placeholder].items()) {
      whole.push_back(is_name ? OrderedJson(name)
                              : OrderedJson{{"name", name}, {"in", "query"}, {"schema", schema}});
    }
  }
  return whole;
}

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

std::string_view openapi_document() {
  static const std::string document = [] {
    OrderedJson json = OrderedJson::parse(embedded_openapi());
    const OrderedJson shared{{sampling_placeholder, sampling_schemas()},
                             {"x-completion", json["x-completion"]}};
    json.erase("x-completion");
    return expanded(json, shared).dump(1);
  }();
  return document;
}

void refuse_undocumented_queries(Router& router) {
  const Json document = parse_json(openapi_document(), "openapi.json");
  const Json& paths = document.at("paths");
  for (const Router::Route& route : router.routes()) {
    if (!route.pattern.starts_with("/api/")) continue;
    const Json& operation = paths.at(route.pattern).at(ascii_lower(route.method));
    router.allow_queries(route, query_names(document, operation));
  }
}

}  // namespace heed::server
