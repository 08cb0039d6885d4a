#include "chat/runtime.h"

namespace heed::chat {

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

}  // namespace heed::chat
