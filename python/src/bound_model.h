// What a Model and a Translator of the module have alike.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bindings.h"

namespace heed::python {

template <class T>
struct EditedOf;
template <>
struct EditedOf<Model> {
  using Type = EditedModel;
};
template <>
struct EditedOf<Translator> {
  using Type = EditedTranslator;
};

template <class T>
void bind_alike(py::class_<Handle<T>>& bound) {
  using Bound = Handle<T>;
  bound
      .def_static("load",
                  [](const std::string& name, const std::string& weights, const std::string& cache,
                     bool pack) {
                    LoadOptions options = load_options(weights, cache);
                    options.pack = pack;
                    return Bound(unlocked([&] { return T::load(name, options); }));
                  })
      .def("close", &Bound::close)
      .def_property_readonly("closed", &Bound::closed)
      .def_property_readonly("name", [](const Bound& handle) { return handle.get()->name(); })
      .def_property_readonly("has_tokenizer",
                             [](const Bound& handle) { return handle.get()->has_tokenizer(); })
      .def_property_readonly(
          "read", [](const Bound& handle) { return read_tuple(read_texts(*handle.get())); })
      .def("unread",
           [](const Bound& handle, const std::string& text) {
             return unread_tuple(unread_words(*handle.get(), text));
           })
      .def("part_tokens", [](const Bound& handle,
                             const std::string& text) { return part_tokens(*handle.get(), text); })
      .def("encode",
           [](const Bound& handle, const std::string& text) { return handle.get()->encode(text); })
      .def("point_names", [](const Bound& handle) { return point_names(*handle.get()); })
      .def("points_named",
           [](const Bound& handle, const std::string& name) {
             return points_named(*handle.get(), name);
           })
      // The same model with hooks, and with edits, in all of its passes.
      .def("with_hooks",
           [](const Bound& handle, const PythonHooks& hooks) {
             return Bound(with_hooks(*handle.get(), hooks_of(hooks)));
           })
      .def("with_edits", [](const Bound& handle, const std::vector<py::dict>& edits) {
        const auto model = handle.get();
        const std::vector<Edit> all = edits_of(edits);
        return Bound(unlocked([&] { return T(typename EditedOf<T>::Type(*model, all)); }));
      });
}

}  // namespace heed::python
