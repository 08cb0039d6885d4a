// The values of a template. Lists, dictionaries and whatever else can refer to itself belong to the
// Runtime of one rendering, and values point to them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "chat/text.h"

namespace heed::chat {

struct List;
class Dict;
struct Namespace;
struct Loop;
struct Cycler;
struct Callable;
class Runtime;

struct None {};

// Jinja's Undefined: prints as nothing, and has no attributes.
struct Undefined {
  std::shared_ptr<const std::string> what;  // "'name'", for messages
};

using TextPointer = std::shared_ptr<const Text>;

class Value {
 public:
  Value() : storage_(Undefined{}) {}
  Value(None none) : storage_(none) {}
  Value(Undefined undefined) : storage_(std::move(undefined)) {}
  Value(bool value) : storage_(value) {}
  Value(std::int64_t value) : storage_(value) {}
  Value(double value) : storage_(value) {}
  Value(TextPointer text) : storage_(std::move(text)) {}
  Value(List* list) : storage_(list) {}
  Value(Dict* dict) : storage_(dict) {}
  Value(Namespace* names) : storage_(names) {}
  Value(Loop* loop) : storage_(loop) {}
  Value(Cycler* cycler) : storage_(cycler) {}
  Value(Callable* callable) : storage_(callable) {}
  Value(const char*) = delete;  // would become a bool

  static Value undefined(std::string what) {
    return Undefined{std::make_shared<const std::string>(std::move(what))};
  }

  // The value of this type, or null: T is None, Undefined, bool, std::int64_t or double.
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&storage_);
  }
  // What it points to, or null: T is List, Dict, Namespace, Loop, Cycler or Callable.
  template <class T>
  T* pointer() const {
    const auto found = std::get_if<T*>(&storage_);
    return found == nullptr ? nullptr : *found;
  }
  const Text* text() const {
    const auto found = std::get_if<TextPointer>(&storage_);
    return found == nullptr ? nullptr : found->get();
  }

  bool is_undefined() const { return get_if<Undefined>() != nullptr; }
  bool is_none() const { return get_if<None>() != nullptr; }
  // bool counts as a number, as in Python.
  bool is_number() const { return is_integer() || get_if<double>() != nullptr; }
  bool is_integer() const { return get_if<bool>() != nullptr || get_if<std::int64_t>() != nullptr; }
  std::int64_t integer() const;  // of bool and std::int64_t
  double real() const;           // of a number

 private:
  std::variant<Undefined, None, bool, std::int64_t, double, TextPointer, List*, Dict*, Namespace*,
               Loop*, Cycler*, Callable*>
      storage_;
};

enum class ListKind { list, tuple };

struct List {
  ListKind kind = ListKind::list;
  std::vector<Value> items;
  bool is_group = false;  // of groupby: a tuple (grouper, list) that has these attributes
};

// Keeps the order of insertion. Keys are texts, numbers, bool, none and undefined; 1, 1.0 and true
// are equal.
class Dict {
 public:
  static bool can_be_key(const Value& value);

  // Each counts steps for the bytes of the key.
  void set(Runtime& runtime, const Value& key, Value value);  // for a key that can be one
  const Value* find(Runtime& runtime, const Value& key) const;
  const Value* find_name(Runtime& runtime, std::string_view key) const;
  const std::vector<std::pair<Value, Value>>& entries() const { return entries_; }

 private:
  std::vector<std::pair<Value, Value>> entries_;
  std::map<std::string, std::size_t, std::less<>> index_;  // by a key's kind and bytes
};

struct Namespace {
  Dict attributes;
};

// The variable `loop` of a for.
struct Loop {
  std::vector<Value> items;  // its own, since a namespace may keep the loop
  std::size_t index = 0;     // from 0
  Value changed;             // what loop.changed() was last called with
  int depth = 0;             // of recursive calls
  std::function<Value(const Value& iterated)> recurse;  // loop(…) of a recursive for
};

// cycler(…)
struct Cycler {
  std::vector<Value> items;  // at least one
  std::size_t position = 0;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct Callable {
  std::string name;
  std::function<Value(const Arguments&)> call;
};

// The name of a value's type in Python, for messages.
std::string_view type_name(const Value& value);

}  // namespace heed::chat
