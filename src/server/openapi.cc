#include "server/openapi.h"

#include "base/json.h"
#include "server/sampling_fields.h"

namespace heed::server {
namespace {

constexpr const char* sampling = "x-sampling";

// What takes the place of an item of a list: names of required fields, or parameters of a query.
OrderedJson items_for(const OrderedJson& item, const OrderedJson& schemas) {
  OrderedJson items = OrderedJson::array();
  const bool is_name = item == sampling;
  if (!is_name && !(item.is_object() && item.contains(sampling))) return {item};
  for (const auto& [name, schema] : schemas.items()) {
    items.push_back(is_name ? OrderedJson(name)
                            : OrderedJson{{"name", name}, {"in", "query"}, {"schema", schema}});
  }
  return items;
}

OrderedJson expanded(const OrderedJson& json, const OrderedJson& schemas) {
  if (json.is_array()) {
    OrderedJson list = OrderedJson::array();
    for (const OrderedJson& item : json) {
      for (const OrderedJson& each : items_for(item, schemas)) {
        list.push_back(expanded(each, schemas));
      }
    }
    return list;
  }
  if (!json.is_object()) return json;
  OrderedJson object = OrderedJson::object();
  for (const auto& [key, value] : json.items()) {
    if (key == sampling) {
      object.update(schemas);
    } else {
      object[key] = expanded(value, schemas);
    }
  }
  return object;
}

}  // namespace

std::string_view openapi_document() {
  static const std::string document =
      expanded(OrderedJson::parse(embedded_openapi()), sampling_schemas()).dump(1);
  return document;
}

}  // namespace heed::server
