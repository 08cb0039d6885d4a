// heed::Error as the classes of heed/errors.py.
#include "bindings.h"

namespace heed::python {

void bind_errors(py::module_& module) {
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const Error& error) {
      const py::object classes = py::module_::import("heed.errors").attr("BY_CODE");
      const py::object type = classes[error_code_name(error.code())];
      PyErr_SetString(type.ptr(), error.what());
    }
  });
  // For tests: an error of each kind.
  module.def("_raise", [](const std::string& code, const std::string& message) {
    for (int number = 0; number <= static_cast<int>(ErrorCode::internal); ++number) {
      const auto known = static_cast<ErrorCode>(number);
      if (code == error_code_name(known)) throw Error(known, message);
    }
    throw Error(ErrorCode::invalid_argument, "there is no kind of error '" + code + "'");
  });
}

}  // namespace heed::python
