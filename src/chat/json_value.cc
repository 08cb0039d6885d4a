#include "chat/json_value.h"

#include <algorithm>
#include <array>

namespace heed::chat {
namespace {

constexpr std::array<std::string_view, 9> usual_roles = {"system",    "developer", "user",
                                                         "assistant", "model",     "tool",
                                                         "function",  "ipython",   "environment"};

Value conversation_text(Runtime& runtime, std::string_view text) {
  return runtime.text(Text(text, Origin::conversation));
}

Value nested_value(Runtime& runtime, const OrderedJson& json, int depth);

Value dict_value(Runtime& runtime, const OrderedJson& json, int depth) {
  Dict* const dict = runtime.new_dict();
  for (const auto& [key, value] : json.items()) {
    dict->set(runtime, conversation_text(runtime, key), nested_value(runtime, value, depth + 1));
  }
  return dict;
}

Value list_value(Runtime& runtime, const OrderedJson& json, int depth) {
  std::vector<Value> items;
  for (const OrderedJson& item : json) items.push_back(nested_value(runtime, item, depth + 1));
  return runtime.new_list(std::move(items));
}

Value nested_value(Runtime& runtime, const OrderedJson& json, int depth) {
  require_value_depth(runtime, depth);
  runtime.count_steps(1);
  switch (json.type()) {
    case OrderedJson::value_t::object: return dict_value(runtime, json, depth);
    case OrderedJson::value_t::array: return list_value(runtime, json, depth);
    case OrderedJson::value_t::string:
      return conversation_text(runtime, json.get_ref<const std::string&>());
    case OrderedJson::value_t::boolean: return json.get<bool>();
    case OrderedJson::value_t::number_integer: return json.get<std::int64_t>();
    case OrderedJson::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > INT64_MAX) {
        runtime.fail("the number {} of the conversation does not fit into 64 bits",
                     json.get<std::uint64_t>());
      }
      return json.get<std::int64_t>();
    case OrderedJson::value_t::number_float: return json.get<double>();
    default: return None{};
  }
}

}  // namespace

Value json_value(Runtime& runtime, const OrderedJson& json) {
  return nested_value(runtime, json, 0);
}

Value messages_value(Runtime& runtime, const OrderedJson& messages) {
  Value value = json_value(runtime, messages);
  const List* const list = value.pointer<List>();
  if (list == nullptr) runtime.fail("the messages must be a list, not a {}", type_name(value));
  for (const Value& message : list->items) {
    Dict* const dict = message.pointer<Dict>();
    if (dict == nullptr) runtime.fail("a message must be an object, not a {}", type_name(message));
    const Value* const role = dict->find_name(runtime, "role");
    if (role == nullptr || role->text() == nullptr) continue;
    const std::string_view name = role->text()->bytes();
    if (std::ranges::find(usual_roles, name) != usual_roles.end()) {
      dict->set(runtime, runtime.text("role"), runtime.text(name));
    }
  }
  return value;
}

void mark_last_content(Runtime& runtime, const Value& messages) {
  const std::vector<Value>& list = messages.pointer<List>()->items;
  Dict* const last = list.empty() ? nullptr : list.back().pointer<Dict>();
  const Value* const content = last == nullptr ? nullptr : last->find_name(runtime, "content");
  if (content == nullptr || content->text() == nullptr) {
    runtime.fail("only a last message whose content is a text can be continued");
  }
  Text marked = *content->text();
  marked.append("x ", Origin::end_mark);
  last->set(runtime, runtime.text("content"), runtime.text(std::move(marked)));
}

}  // namespace heed::chat
