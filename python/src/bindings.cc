#include "bindings.h"

#include <cxxabi.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace heed::python {
namespace {

std::atomic<int> computing = 0;  // threads, without the lock
std::atomic<bool> ending = false;
std::atomic<std::thread::id> ending_thread;

bool may_return() { return !ending || ending_thread.load() == std::this_thread::get_id(); }

[[noreturn]] void wait_for_the_end() {
  while (true) ::pause();
}

// Python may notice only now that it ends, and unwind this thread's stack: that stops here.
template <class Take>
auto take_lock(Take&& take) {
  if (!may_return()) {
    --computing;
    wait_for_the_end();
  }
  try {
    return take();
  } catch (const abi::__forced_unwind&) {
    wait_for_the_end();
  }
}

}  // namespace

py::object read_tuple(const std::optional<ReadTexts>& read) {
  if (!read) return py::none();
  return py::make_tuple(read->title, read->tokens, read->words, read->target_words);
}

py::object unread_tuple(const std::optional<UnreadText>& unread) {
  if (!unread) return py::none();
  py::list words;
  for (const UnreadText::Word& word : unread->words) {
    words.append(py::make_tuple(word.text, word.begin, word.end));
  }
  return py::make_tuple(words, unread->of, unread->note);
}

Unlocked::Unlocked() {
  ++computing;
  state_ = PyEval_SaveThread();
}

Unlocked::~Unlocked() {
  take_lock([this] { PyEval_RestoreThread(state_); });
  --computing;
}

Locked::Locked() : state_(take_lock([] { return PyGILState_Ensure(); })) {}

void forget_other_threads() { computing = 0; }

void end_computing() {
  constexpr auto patience = std::chrono::seconds(10);
  ending_thread = std::this_thread::get_id();
  ending = true;
  PyThreadState* const state = PyEval_SaveThread();
  const auto last = std::chrono::steady_clock::now() + patience;
  while (computing > 0 && std::chrono::steady_clock::now() < last) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  PyEval_RestoreThread(state);
}

py::array constant(py::array array) {
  array.attr("setflags")(py::arg("write") = false);
  return array;
}

py::array array_of(const SharedView& view, std::shared_ptr<const void> owner) {
  std::vector<py::ssize_t> shape(view.shape.begin(), view.shape.end()), strides;
  for (const std::int64_t stride : view.strides) {
    strides.push_back(stride * static_cast<py::ssize_t>(sizeof(float)));
  }
  using Owner = std::shared_ptr<const void>;
  auto held = std::make_unique<Owner>(std::move(owner));
  const py::capsule base(held.get(), [](void* memory) { delete static_cast<Owner*>(memory); });
  static_cast<void>(held.release());
  return py::array(py::dtype::of<float>(), std::move(shape), std::move(strides), view.data, base);
}

py::array array_of(const Array& array) {
  SharedView view{.data = array.owner().get(), .shape = array.shape(), .owner = array.owner()};
  view.strides.assign(view.shape.size(), 1);
  for (std::size_t i = view.shape.size(); i-- > 1;) {
    view.strides[i - 1] = view.strides[i] * view.shape[i];
  }
  return array_of(view, view.owner);
}

TokenBatch batch_of(const TokenArray& tokens) {
  return {.tokens = {tokens.data(), static_cast<std::size_t>(tokens.size())},
          .sequences = tokens.ndim() == 2 ? tokens.shape(0) : 1};
}

TokenBatch batch_of(const TokenArray& tokens, const TokenArray& types, const Lengths& lengths) {
  TokenBatch batch = batch_of(tokens);
  if (!lengths.empty()) {
    batch.sequences = static_cast<std::int64_t>(lengths.size());
    batch.lengths = lengths;
  }
  batch.token_types = {types.data(), static_cast<std::size_t>(types.size())};
  return batch;
}

std::vector<std::int32_t> vector_of(const TokenArray& tokens) {
  return {tokens.data(), tokens.data() + tokens.size()};
}

SourceAndTarget pair_of(const TokenArray& source, const TokenArray& target) {
  return {{source.data(), static_cast<std::size_t>(source.size())},
          {target.data(), static_cast<std::size_t>(target.size())}};
}

std::vector<SourceAndTarget> pairs_of(const std::vector<TokenArray>& sources,
                                      const std::vector<TokenArray>& targets) {
  if (sources.size() != targets.size()) {
    throw Error(ErrorCode::invalid_argument, "expected as many targets as sources");
  }
  std::vector<SourceAndTarget> pairs;
  for (std::size_t i = 0; i < sources.size(); ++i) pairs.push_back(pair_of(sources[i], targets[i]));
  return pairs;
}

void SignalPoll::operator()() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(50);
  const Locked lock;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

std::vector<Hook> hooks_of(const PythonHooks& hooks) {
  std::vector<Hook> all;
  for (const auto& [where, function] : hooks) {
    // Copied and destroyed without the lock: the function is held by a pointer.
    const std::shared_ptr<py::function> held(new py::function(function), [](py::function* owned) {
      const Locked lock;
      delete owned;
    });
    all.push_back({.where = where, .call = [held](const HookedPoint& point, Array& values) {
                     const Locked lock;
                     (*held)(point.name, point.first_position, point.text, array_of(values));
                   }});
  }
  return all;
}

RunOptions run_options(const PythonHooks& hooks, const PythonHooks& gradient_hooks,
                       const TargetLogits& target) {
  return {.hooks = hooks_of(hooks),
          .gradient_hooks = hooks_of(gradient_hooks),
          .target = target_of(target),
          .poll = SignalPoll{}};
}

GradientTarget target_of(const TargetLogits& logits) {
  GradientTarget target;
  for (const auto& [position, token, weight] : logits) {
    target.logits.push_back({.position = position, .token = token, .weight = weight});
  }
  return target;
}

}  // namespace heed::python
