#include "chat/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace heed::chat {
namespace {

// Equal for equal keys only.
std::string index_key(Runtime& runtime, const Value& key) {
  if (const Text* text = key.text()) {
    runtime.count_read(text->size());
    return fmt::format("s{}", text->bytes());
  }
  if (key.is_integer()) return fmt::format("i{}", key.integer());
  if (const double* real = key.get_if<double>()) {
    const bool whole = std::floor(*real) == *real && std::abs(*real) < 9e15;
    if (whole) return fmt::format("i{}", static_cast<std::int64_t>(*real));
    return fmt::format("d{}", *real);
  }
  return key.is_undefined() ? "u" : "n";
}

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

std::int64_t Value::integer() const {
  if (const bool* value = get_if<bool>()) return *value ? 1 : 0;
  return *get_if<std::int64_t>();
}

double Value::real() const {
  if (const double* value = get_if<double>()) return *value;
  return static_cast<double>(integer());
}

bool Dict::can_be_key(const Value& value) {
  return value.text() != nullptr || value.is_number() || value.is_none() || value.is_undefined();
}

void Dict::set(Runtime& runtime, const Value& key, Value value) {
  const auto [found, added] = index_.try_emplace(index_key(runtime, key), entries_.size());
  if (added) {
    entries_.emplace_back(key, std::move(value));
  } else {
    entries_[found->second].second = std::move(value);
  }
}

const Value* Dict::find(Runtime& runtime, const Value& key) const {
  if (!can_be_key(key)) return nullptr;
  const auto found = index_.find(index_key(runtime, key));
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

const Value* Dict::find_name(Runtime& runtime, std::string_view key) const {
  runtime.count_read(key.size());
  const auto found = index_.find(fmt::format("s{}", key));
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

std::string_view type_name(const Value& value) {
  if (value.is_undefined()) return "undefined";
  if (value.is_none()) return "none";
  if (value.get_if<bool>() != nullptr) return "bool";
  if (value.is_integer()) return "int";
  if (value.is_number()) return "float";
  if (value.text() != nullptr) return "string";
  if (const List* list = value.pointer<List>()) {
    return list->kind == ListKind::list ? "list" : "tuple";
  }
  if (value.pointer<Dict>() != nullptr) return "dict";
  if (value.pointer<Namespace>() != nullptr) return "namespace";
  if (value.pointer<Loop>() != nullptr) return "loop";
  if (value.pointer<Cycler>() != nullptr) return "cycler";
  return "function";
}

void Runtime::count_steps(std::size_t steps) {
  if (stop_requested(limits_.stop)) {
    heed::fail(ErrorCode::interrupted, "{}: stopped before the text was complete", name_);
  }
  const std::int64_t left = limits_.steps - steps_;
  if (left < 0 || steps > static_cast<std::size_t>(left)) {
    fail("the template needs more than {} steps", limits_.steps);
  }
  steps_ += static_cast<std::int64_t>(steps);
}

void Runtime::require_text_size(std::size_t bytes) const {
  if (bytes > limits_.output_bytes) {
    fail("a text would be longer than {} bytes", limits_.output_bytes);
  }
}

void Runtime::count_bytes(std::size_t bytes) {
  require_text_size(bytes);
  count_read(bytes);
  bytes_ += static_cast<std::int64_t>(bytes);
  if (bytes_ > limits_.text_bytes) {
    fail("the template makes more than {} bytes of text", limits_.text_bytes);
  }
}

Value Runtime::text(Text text) {
  count_bytes(text.size());
  return std::make_shared<const Text>(std::move(text));
}

List* Runtime::new_list(std::vector<Value> items, ListKind kind) {
  count_steps(items.size());
  return &lists_.emplace_back(List{kind, std::move(items)});
}

Callable* Runtime::new_callable(std::string name, std::function<Value(const Arguments&)> call) {
  return &callables_.emplace_back(Callable{std::move(name), std::move(call)});
}

Nesting::Nesting(Runtime& runtime) : runtime_(runtime) {
  if (runtime.depth_ >= runtime.limits_.depth) {
    runtime.fail("the template nests deeper than {} levels when it is evaluated",
                 runtime.limits_.depth);
  }
  ++runtime.depth_;
}

void require_value_depth(const Runtime& runtime, int depth) {
  if (depth > deepest_value) {
    runtime.fail("a list or dictionary nests deeper than {} levels", deepest_value);
  }
}

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
