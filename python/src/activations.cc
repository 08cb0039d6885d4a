// Recorded passes.
#include "recorded.h"

namespace heed::python {
namespace {

py::array attention(const Recorded& recorded, const std::string& name,
                    const std::vector<std::int64_t>& sequences,
                    const std::vector<std::int64_t>& heads,
                    const std::pair<std::int64_t, std::int64_t>& queries,
                    const std::pair<std::int64_t, std::int64_t>& keys) {
  return array_of(unlocked([&] {
    return recorded.activations().attention(name, {.sequences = sequences,
                                                   .heads = heads,
                                                   .query_begin = queries.first,
                                                   .query_end = queries.second,
                                                   .key_begin = keys.first,
                                                   .key_end = keys.second});
  }));
}

Recorded record_pass(const ModelHandle& handle, const TokenArray& tokens,
                     const std::vector<std::string>& points, bool logits, const PythonHooks& hooks,
                     const std::vector<std::tuple<std::int64_t, std::int32_t, double>>& target) {
  auto model = handle.get();
  RunOptions options = run_options(hooks);
  options.target = target_of(target);
  Activations found = unlocked([&] {
    return record(*model, batch_of(tokens), {.points = points, .logits = logits}, options);
  });
  return {std::move(model), std::move(found)};
}

}  // namespace

void bind_activations(py::module_& module) {
  py::class_<Recorded>(module, "Recorded")
      .def_property_readonly(
          "names", [](const Recorded& recorded) { return recorded.activations().names(); })
      .def_property_readonly(
          "tokens", [](const Recorded& recorded) { return recorded.activations().tokens(); })
      .def_property_readonly(
          "sequences", [](const Recorded& recorded) { return recorded.activations().sequences(); })
      .def_property_readonly(
          "positions", [](const Recorded& recorded) { return recorded.activations().positions(); })
      .def_property_readonly(
          "bytes", [](const Recorded& recorded) { return recorded.activations().bytes(); })
      .def_property_readonly(
          "logits",
          [](const Recorded& recorded) { return array_of(recorded.activations().logits()); })
      .def("full_name",
           [](const Recorded& recorded, const std::string& name) {
             return recorded.activations().full_name(name);
           })
      .def("has", [](const Recorded& recorded,
                     const std::string& name) { return recorded.activations().has(name); })
      .def("shape", [](const Recorded& recorded,
                       const std::string& name) { return recorded.activations().shape(name); })
      .def("is_lazy",
           [](const Recorded& recorded, const std::string& name) {
             return recorded.activations().is_lazy_attention(name);
           })
      .def("at", &Recorded::at)
      .def("attention", &attention);
  module.def("record", &record_pass);
  // (B, T − 1) from logits (B, T, V), an array of heed's, and tokens (B, T).
  module.def("losses_of", [](const FloatArray& logits, const TokenArray& tokens) {
    return array_of(
        unlocked([&] { return losses_from_logits(borrowed(logits), batch_of(tokens)); }));
  });
}

}  // namespace heed::python
