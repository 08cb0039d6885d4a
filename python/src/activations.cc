// Recorded passes.
#include "recorded.h"

namespace heed::python {
namespace {

py::array attention(const Recorded& recorded, const std::string& name,
                    const std::vector<std::int64_t>& sequences,
                    const std::vector<std::int64_t>& heads,
                    const std::pair<std::int64_t, std::int64_t>& queries,
                    const std::pair<std::int64_t, std::int64_t>& keys) {
  return constant(array_of(unlocked([&] {
    return recorded.activations().attention(name, {.sequences = sequences,
                                                   .heads = heads,
                                                   .query_begin = queries.first,
                                                   .query_end = queries.second,
                                                   .key_begin = keys.first,
                                                   .key_end = keys.second});
  })));
}

// A pass of a model with `options`, as run_options() reads them.
Recorded record_pass(const ModelHandle& handle, const PassTokens& read,
                     const std::vector<std::string>& points, bool logits, const py::dict& options) {
  auto model = handle.get();
  const RunOptions run = run_options(options);
  Activations found = unlocked(
      [&] { return record(*model, batch_of(read), {.points = points, .logits = logits}, run); });
  return {std::move(model), std::move(found)};
}

// Arrays by name of a stored cache, or of one that a user filled.
Recorded given_activations(const ModelHandle& handle,
                           const std::map<std::string, FloatArray>& arrays, const Lengths& lengths,
                           bool of_pass) {
  auto model = handle.get();
  GivenActivations given{
      .arrays = {},
      .lengths = lengths,
      .kind = of_pass ? GivenActivations::Kind::of_pass : GivenActivations::Kind::others};
  for (const auto& [name, values] : arrays) given.arrays.emplace(name, shared(values));
  Activations found = activations_from(*model, std::move(given));
  return {std::move(model), std::move(found)};
}

}  // namespace

Array shared(const FloatArray& values) {
  const auto held = std::shared_ptr<FloatArray>(new FloatArray(values), [](FloatArray* owned) {
    const Locked lock;
    delete owned;
  });
  return {std::vector<std::int64_t>(values.shape(), values.shape() + values.ndim()),
          {const_cast<float*>(values.data()), [held](float*) {}}};
}

void bind_activations(py::module_& module) {
  py::class_<Recorded>(module, "Recorded")
      .def_property_readonly(
          "names", [](const Recorded& recorded) { return recorded.activations().names(); })
      .def_property_readonly(
          "tokens", [](const Recorded& recorded) { return recorded.activations().tokens(); })
      .def_property_readonly(
          "source_tokens",
          [](const Recorded& recorded) { return recorded.activations().source_tokens(); })
      .def_property_readonly(
          "sequences", [](const Recorded& recorded) { return recorded.activations().sequences(); })
      .def_property_readonly(
          "lengths", [](const Recorded& recorded) { return recorded.activations().lengths(); })
      .def_property_readonly(
          "source_lengths",
          [](const Recorded& recorded) { return recorded.activations().source_lengths(); })
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
  module.def("given_activations", &given_activations);
  // (B, T) from logits (B, T, V), an array of heed's, and the tokens (B, T) that follow.
  module.def(
      "losses_from_logits", [](const FloatArray& logits, const std::vector<std::int32_t>& next) {
        return array_of(unlocked([&] { return losses_from_logits(borrowed(logits), next); }));
      });
}

}  // namespace heed::python
