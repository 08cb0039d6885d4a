// Sparse dictionaries, and their features as points of passes.
#include "heed/features.h"

#include "recorded.h"

namespace heed::python {
namespace {

py::dict described(const DictionaryInfo& info) {
  py::dict all;
  all["architecture"] = info.architecture;
  all["normalize_activations"] = info.input_norm;
  all["apply_b_dec_to_input"] = info.subtracts_decoder_bias;
  all["is_transcoder"] = info.is_transcoder;
  all["d_in"] = info.inputs;
  all["d_sae"] = info.features;
  all["d_out"] = info.outputs;
  all["k"] = info.k;
  all["hook_name"] = info.input_point;
  all["hook_names_out"] = info.output_points;
  all["hook_head_index"] = info.input_head;
  all["hook_head_index_out"] = info.output_head;
  all["model_name"] = info.model;
  all["n_params"] = info.parameters;
  return all;
}

std::vector<SparseDictionary> load_dictionaries(const std::string& path, const std::string& input,
                                                const std::string& output,
                                                std::optional<double> factor) {
  return unlocked([&] {
    return SparseDictionary::load(
        path, {.input_point = input, .output_point = output, .norm_scaling_factor = factor});
  });
}

// (name, function) pairs, whose functions change the values that they are given.
py::list functions_of(const std::vector<Hook>& hooks) {
  py::list all;
  for (const Hook& hook : hooks) {
    all.append(py::make_tuple(
        hook.where,
        py::cpp_function([call = hook.call](const std::string& name, std::int64_t first,
                                            std::int64_t text, const FloatArray& values) {
          Array own = borrowed(values);
          unlocked([&] { call({.name = name, .first_position = first, .text = text}, own); });
        })));
  }
  return all;
}

}  // namespace

void bind_features(py::module_& module) {
  py::class_<SparseDictionary>(module, "SparseDictionary")
      .def_static("load", &load_dictionaries)
      .def_property_readonly(
          "info", [](const SparseDictionary& dictionary) { return described(dictionary.info()); })
      .def("encode",
           [](const SparseDictionary& dictionary, const FloatArray& x) {
             return array_of(unlocked([&] { return dictionary.encode(borrowed(x)); }));
           })
      .def("decode",
           [](const SparseDictionary& dictionary, const FloatArray& acts, const FloatArray& x,
              std::int64_t point) {
             return array_of(
                 unlocked([&] { return dictionary.decode(borrowed(acts), borrowed(x), point); }));
           })
      .def("weight",
           [](const SparseDictionary& dictionary, const std::string& name) {
             const SharedView view = dictionary.weight(name);
             return constant(array_of(view, view.owner));
           })
      .def("save", [](const SparseDictionary& dictionary, const std::string& directory) {
        unlocked([&] { dictionary.save(directory); });
      });

  py::class_<Splice>(module, "Splice")
      .def(py::init(
          [](const ModelHandle& handle, const std::vector<SparseDictionary>& all, bool error) {
            return Splice(*handle.get(), all, error ? ErrorTerm::added : ErrorTerm::none);
          }))
      .def_property_readonly("names", &Splice::names)
      .def("names_like", &Splice::names_like)
      .def("set_hooks",
           [](Splice& splice, const PythonHooks& hooks) { splice.hook(hooks_of(hooks)); })
      .def("set_gradient_hooks",
           [](Splice& splice, const PythonHooks& hooks) { splice.hook_gradients(hooks_of(hooks)); })
      .def("keep", &Splice::keep)
      .def("kept", [](const Splice& splice,
                      const std::string& name) { return array_of(splice.kept(name)); })
      .def("hooks", [](const Splice& splice) { return functions_of(splice.hooks()); })
      .def("gradient_hooks",
           [](const Splice& splice) { return functions_of(splice.gradient_hooks()); });
}

}  // namespace heed::python
