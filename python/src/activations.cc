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

// A pass over tokens of a model with `options`, as run_options() reads them.
Recorded record_pass(const ModelHandle& handle, const TokenArray& tokens, const TokenArray& types,
                     const Lengths& lengths, const std::vector<std::string>& points, bool logits,
                     const py::dict& options) {
  auto model = handle.get();
  const RunOptions run = run_options(options);
  Activations found = unlocked([&] {
    return record(*model, batch_of(tokens, types, lengths), {.points = points, .logits = logits},
                  run);
  });
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

// The same over sources and what the decoder reads.
Recorded record_pairs(const ModelHandle& handle, const std::vector<TokenArray>& sources,
                      const std::vector<TokenArray>& targets,
                      const std::vector<std::string>& points, bool logits,
                      const py::dict& options) {
  auto translator = handle.get();
  const RunOptions run = run_options(options);
  const std::vector<SourceAndTarget> pairs = pairs_of(sources, targets);
  Activations found = unlocked(
      [&] { return record(*translator, pairs, {.points = points, .logits = logits}, run); });
  return {std::move(translator), std::move(found)};
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
  module.def("record", &record_pairs);
  module.def("given_activations", &given_activations);
  // (1, T) from logits (1, T, V), an array of heed's, and the tokens (T) that follow.
  module.def("losses_of_next", [](const FloatArray& logits, const std::vector<std::int32_t>& next) {
    return array_of(unlocked([&] { return losses_of_next(borrowed(logits), next); }));
  });
  // (B, T − 1) from logits (B, T, V), an array of heed's, and tokens (B, T).
  module.def("losses_of", [](const FloatArray& logits, const TokenArray& tokens) {
    return array_of(
        unlocked([&] { return losses_from_logits(borrowed(logits), batch_of(tokens)); }));
  });
}

}  // namespace heed::python
