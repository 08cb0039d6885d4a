#include "chat/value.h"

#include <fmt/format.h>

#include <cmath>

#include "chat/runtime.h"

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

}  // namespace heed::chat
