// A recorded pass in Python.
#pragma once

#include <memory>
#include <utility>

#include "bindings.h"

namespace heed::python {

// Keeps the model that computes what a pass did not have in memory.
class Recorded {
 public:
  Recorded(std::shared_ptr<const void> model, Activations found)
      : model_(std::move(model)), found_(std::move(found)) {}

  const Activations& activations() const { return found_; }

  py::array at(const std::string& name) const {
    const SharedView view = unlocked([&] { return found_.at(name); });
    return constant(array_of(view, view.owner));
  }

 private:
  std::shared_ptr<const void> model_;
  Activations found_;
};

// heed's view of a dense array of numbers, for the time of a call.
using FloatArray = py::array_t<float, py::array::c_style>;
inline Array borrowed(const FloatArray& values) {
  return {std::vector<std::int64_t>(values.shape(), values.shape() + values.ndim()),
          {const_cast<float*>(values.data()), [](float*) {}}};
}

// The same of an array that heed keeps: its owner keeps the NumPy array.
Array shared(const FloatArray& values);

}  // namespace heed::python
