// What the parts of an evaluation share: the memory of one rendering, its limits and the current
// line.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "chat/limits.h"
#include "chat/template_error.h"
#include "chat/value.h"

namespace heed::chat {

class Runtime {
 public:
  Runtime(const RenderLimits& limits, std::string_view name) : limits_(limits), name_(name) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  Place place() const { return {name_, line_}; }
  void set_line(int line) { line_ = line; }

  // Throws Error{invalid_argument} with the name and line.
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> message, Args&&... args) const {
    heed::fail(ErrorCode::invalid_argument, "{}, line {}: {}", name_, line_,
               fmt::format(message, std::forward<Args>(args)...));
  }
  [[noreturn]] void fail_unsupported(std::string_view construct) const {
    chat::fail_unsupported(place(), construct);
  }

  // Counts work before it is done. Throws for a limit, and once the rendering is to stop.
  void count_steps(std::size_t steps);
  void count_read(std::size_t bytes) { count_steps(bytes / bytes_of_a_step); }
  void count_bytes(std::size_t bytes);  // of text that is made

  // Throws if a text of so many bytes would be too long.
  void require_text_size(std::size_t bytes) const;

  // Text that becomes a value.
  Value text(Text text);
  Value text(std::string_view bytes) { return text(Text(bytes)); }

  List* new_list(ListKind kind = ListKind::list) { return &lists_.emplace_back(List{kind, {}}); }
  List* new_list(std::vector<Value> items, ListKind kind = ListKind::list);
  Dict* new_dict() { return &dicts_.emplace_back(); }
  Namespace* new_namespace() { return &namespaces_.emplace_back(); }
  Loop* new_loop() { return &loops_.emplace_back(); }
  Cycler* new_cycler() { return &cyclers_.emplace_back(); }
  Callable* new_callable(std::string name, std::function<Value(const Arguments&)> call);

  const RenderLimits& limits() const { return limits_; }

 private:
  friend class Nesting;

  RenderLimits limits_;
  std::string_view name_;
  int line_ = 1;
  std::int64_t steps_ = 0;
  std::int64_t bytes_ = 0;
  int depth_ = 0;
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::deque<Namespace> namespaces_;
  std::deque<Loop> loops_;
  std::deque<Cycler> cyclers_;
  std::deque<Callable> callables_;
};

// One level of evaluation, which takes a part of the stack.
class Nesting {
 public:
  explicit Nesting(Runtime& runtime);
  ~Nesting() { --runtime_.depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  Runtime& runtime_;
};

// Throws if lists and dictionaries nest deeper than they may, or contain themselves.
void require_value_depth(const Runtime& runtime, int depth);

}  // namespace heed::chat
