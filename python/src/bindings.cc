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

TokenBatch batch_of(const PassTokens& read) {
  const auto& [tokens, types, lengths, sources, source_lengths] = read;
  TokenBatch batch = batch_of(tokens);
  if (!lengths.empty()) {
    batch.sequences = static_cast<std::int64_t>(lengths.size());
    batch.lengths = lengths;
  }
  batch.token_types = {types.data(), static_cast<std::size_t>(types.size())};
  batch.sources = {sources.data(), static_cast<std::size_t>(sources.size())};
  batch.source_lengths = source_lengths;
  return batch;
}

std::vector<std::int32_t> vector_of(const TokenArray& tokens) {
  return {tokens.data(), tokens.data() + tokens.size()};
}

Texts texts_read(const OneRead& read) {
  return {.source = vector_of(read.first), .target = vector_of(read.second)};
}

void SignalPoll::operator()() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(50);
  const Locked lock;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

namespace {

// Of what is copied and destroyed without the lock.
std::shared_ptr<py::function> held_function(const py::function& function) {
  return {new py::function(function), [](py::function* owned) {
            const Locked lock;
            delete owned;
          }};
}

}  // namespace

std::vector<Hook> hooks_of(const PythonHooks& hooks) {
  std::vector<Hook> all;
  for (const auto& [where, function] : hooks) {
    const std::shared_ptr<py::function> held = held_function(function);
    all.push_back({.where = where, .call = [held](const HookedPoint& point, Array& values) {
                     const Locked lock;
                     (*held)(point.name, point.first_position, point.text, array_of(values));
                   }});
  }
  return all;
}

RunOptions run_options(const PythonHooks& hooks) {
  return {.hooks = hooks_of(hooks), .poll = SignalPoll{}};
}

namespace {

using DenseFloats = py::array_t<float, py::array::c_style>;

// A copy in heed's memory.
Array copied(const DenseFloats& values) {
  return {std::vector<std::int64_t>(values.shape(), values.shape() + values.ndim()),
          std::vector<float>(values.data(), values.data() + values.size())};
}

Array copied_or_none(const py::object& values) {
  return values.is_none() ? Array() : copied(values.cast<DenseFloats>());
}

GradientTarget target_of(const py::dict& given) {
  GradientTarget target;
  for (const auto& [position, token, weight] :
       given["logits"].cast<std::vector<std::tuple<std::int64_t, std::int32_t, double>>>()) {
    target.logits.push_back({.position = position, .token = token, .weight = weight});
  }
  target.logit_weights = copied_or_none(given["logit_weights"]);
  for (const auto& [point, weights] :
       given["point_weights"].cast<std::vector<std::pair<std::string, DenseFloats>>>()) {
    target.points.push_back({.point = point, .weights = copied(weights)});
  }
  return target;
}

MetricGradient metric_of(const py::object& function) {
  if (function.is_none()) return {};
  const auto held = held_function(function);
  return [held](const Array& logits) {
    const Locked lock;
    return copied((*held)(array_of(logits)).cast<DenseFloats>());
  };
}

std::vector<FrozenPart> frozen_parts(const std::vector<std::string>& names) {
  std::vector<FrozenPart> parts;
  for (const std::string& name : names) {
    if (name != "pattern" && name != "scale") {
      throw Error(ErrorCode::invalid_argument,
                  "freeze has '" + name + "', expected \"pattern\" or \"scale\"");
    }
    parts.push_back(name == "pattern" ? FrozenPart::pattern : FrozenPart::scale);
  }
  return parts;
}

}  // namespace

RunOptions run_options(const py::dict& given) {
  const auto [begin, end] = given["layers"].cast<std::pair<std::int64_t, std::int64_t>>();
  return {.hooks = hooks_of(given["hooks"].cast<PythonHooks>()),
          .gradient_hooks = hooks_of(given["gradient_hooks"].cast<PythonHooks>()),
          .target = target_of(given),
          .metric = metric_of(given["metric"]),
          .freeze = frozen_parts(given["freeze"].cast<std::vector<std::string>>()),
          .layer_begin = begin,
          .layer_end = end,
          .stream = copied_or_none(given["stream"]),
          .poll = SignalPoll{}};
}

}  // namespace heed::python
