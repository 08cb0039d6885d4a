// What the files of the Python module share: arrays as views, hooks, waiting without the
// interpreter's lock, and models that may be closed.
#pragma once

#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "heed/activations.h"
#include "heed/error.h"
#include "heed/heed.h"
#include "heed/intervention.h"
#include "heed/reading.h"
#include "heed/texts.h"
#include "heed/translate.h"

namespace heed::python {

namespace py = pybind11;

// Token ids (B, T), dense.
using TokenArray = py::array_t<std::int32_t, py::array::c_style>;

void bind_errors(py::module_& module);
class ModelHandle;

void bind_model(py::module_& module);
void bind_activations(py::module_& module);
void bind_device(py::module_& module);
void bind_explanations(py::module_& module);
void bind_features(py::module_& module);
void bind_graphs(py::module_& module);
void bind_training(py::module_& module);
void bind_translation(py::module_& module, py::class_<ModelHandle>& model);

// NumPy arrays of heed's memory, which they keep alive.
// (title, tokens, words or None, target words or None), or None.
py::object read_tuple(const std::optional<ReadTexts>& read);
// ([(text, begin, end)], different words, note), or None.
py::object unread_tuple(const std::optional<UnreadText>& unread);

py::array array_of(const Array& array);
py::array array_of(const SharedView& view, std::shared_ptr<const void> owner);
// The same, which cannot be written to.
py::array constant(py::array array);

// What a pass reads: tokens, their types, lengths, sources and their lengths. Tokens are an array
// (B, T) or (T), or (N) of texts of the lengths; types have their shape, or there are none;
// sources, (M) of all texts, are those of a translator, or none.
using Lengths = std::vector<std::int64_t>;
using PassTokens = std::tuple<TokenArray, TokenArray, Lengths, TokenArray, Lengths>;
TokenBatch batch_of(const TokenArray& tokens);
TokenBatch batch_of(const PassTokens& read);
std::vector<std::int32_t> vector_of(const TokenArray& tokens);
// One text, or a source and a target: (source or nothing, target).
using OneRead = std::pair<TokenArray, TokenArray>;
Texts texts_read(const OneRead& read);

// A model that Python may close; what runs or is viewed keeps it alive.
class ModelHandle {
 public:
  explicit ModelHandle(Model model) : model_(std::make_shared<const Model>(std::move(model))) {}

  // Throws Error{invalid_argument} once it is closed.
  std::shared_ptr<const Model> get() const {
    if (model_ == nullptr) {
      throw Error(ErrorCode::invalid_argument, "the model is closed: load it again");
    }
    return model_;
  }
  void close() { model_.reset(); }
  bool closed() const { return model_ == nullptr; }

 private:
  std::shared_ptr<const Model> model_;
};

std::vector<py::bytes> bytes_of(const std::vector<std::string>& texts);

// Handles signals, some twenty times a second: throws the exception that a handler raised, such as
// KeyboardInterrupt. Call it without the interpreter's lock.
class SignalPoll {
 public:
  void operator()();

 private:
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now();
};

// While the interpreter ends, Python ends threads that want its lock by unwinding their stacks,
// which C++ does not survive, and static objects are destroyed under those that still compute. So
// before that, end_computing() waits until other threads have left heed or wait here, which they
// then do for as long as the process lives.
void end_computing();
// In a fork, which has no other threads.
void forget_other_threads();

// The interpreter's lock, given away for the time of a computation.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// The lock again, within such a computation.
class Locked {
 public:
  Locked();
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};

// Runs `compute` without the interpreter's lock.
template <class Compute>
auto unlocked(Compute&& compute) {
  const Unlocked scope;
  return compute();
}

// (name, function) pairs as hooks that take the lock for their call: function(name, first position,
// text, values).
using PythonHooks = std::vector<std::pair<std::string, py::function>>;
std::vector<Hook> hooks_of(const PythonHooks& hooks);

// Edits as heed.interventions describes them.
std::vector<Edit> edits_of(const std::vector<py::dict>& edits);

RunOptions run_options(const PythonHooks& hooks);
// Of a pass: hooks, gradient_hooks, logits [(position, token, weight)], logit_weights (B, T, V) or
// None, point_weights [(name, array)], metric (a function of logits (B, T, V) that gives its
// gradient, or None), freeze [names], layers (begin, end), stream (B, T, C) or None.
RunOptions run_options(const py::dict& given);

}  // namespace heed::python
