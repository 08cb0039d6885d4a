// Sparse dictionaries, and their features as points of passes.
#include "heed/features.h"

#include <atomic>
#include <exception>

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

py::object quality_of(const std::optional<DictionaryQuality>& found) {
  if (!found) return py::none();
  py::dict all;
  all["tokens"] = found->tokens;
  all["loss"] = found->loss;
  all["loss_with"] = found->loss_with;
  all["loss_with_zeros"] = found->loss_with_zeros;
  all["loss_recovered"] = found->recovered;
  all["l0"] = found->active;
  all["explained_variance"] = found->explained;
  all["used_features"] = found->used;
  return all;
}

py::dict progress_of(const DictionaryProgress& now) {
  py::dict all;
  all["step"] = now.step;
  all["steps"] = now.steps;
  all["loss"] = now.loss;
  all["l1_loss"] = now.penalty;
  all["auxiliary_loss"] = now.auxiliary;
  all["l0"] = now.active;
  all["explained_variance"] = now.explained;
  all["dead_features"] = now.dead;
  all["resampled_features"] = now.resampled;
  return all;
}

// From a dict of all of its fields.
DictionaryTraining training_of(const py::dict& options) {
  const auto integer = [&](const char* name) { return options[name].cast<std::int64_t>(); };
  const auto real = [&](const char* name) { return options[name].cast<double>(); };
  return {.architecture = options["architecture"].cast<std::string>(),
          .features = integer("d_sae"),
          .k = integer("k"),
          .l1 = real("l1_coefficient"),
          .l0 = real("l0_coefficient"),
          .learning_rate = real("lr"),
          .steps = integer("steps"),
          .warmup = real("warmup"),
          .decay = real("decay"),
          .dead_after = integer("dead_after"),
          .auxiliary_k = integer("auxiliary_k"),
          .auxiliary = real("auxiliary_coefficient"),
          .resample_every = integer("resample_every"),
          .resample_norm = real("resample_norm"),
          .seed = options["seed"].cast<std::uint64_t>()};
}

// Signals and exceptions of `progress` stop the run, whose steps are saved; then they are rethrown.
py::dict train_on_model(const ModelHandle& handle, const py::dict& options,
                        const py::object& progress) {
  const auto model = handle.get();
  const auto text = [&](const char* name) { return options[name].cast<std::string>(); };
  const auto integer = [&](const char* name) { return options[name].cast<std::int64_t>(); };
  std::atomic<bool> stop{false};
  std::exception_ptr raised;
  SignalPoll poll;
  DictionaryTrainingRun run{.training = training_of(options),
                            .input_point = text("hook_name"),
                            .output_point = text("hook_name_out"),
                            .head = integer("hook_head_index"),
                            .file = text("file"),
                            .text = text("text"),
                            .validation = text("validation"),
                            .out = text("out"),
                            .batch = integer("batch"),
                            .buffer = integer("buffer"),
                            .window = integer("context_size"),
                            .evaluated = integer("evaluated_tokens"),
                            .progress = {},
                            .stop = &stop};
  run.progress = [&](const DictionaryProgress& now) {
    try {
      poll();
      if (progress.is_none()) return;
      const Locked lock;
      progress(progress_of(now));
    } catch (...) {
      raised = std::current_exception();
      stop = true;
    }
  };
  const DictionaryTrainingResult found = unlocked([&] { return train_dictionary(*model, run); });
  if (raised) std::rethrow_exception(raised);
  py::dict result = progress_of(found.last);
  result["steps"] = found.steps;
  result["tokens"] = found.tokens;
  result["interrupted"] = found.interrupted;
  result["quality"] = quality_of(found.quality);
  return result;
}

py::tuple survey(const ModelHandle& handle, const SparseDictionary& dictionary,
                 const std::string& text, const py::dict& options) {
  const auto model = handle.get();
  const auto integer = [&](const char* name) { return options[name].cast<std::int64_t>(); };
  const FeatureSearch wanted{.features = options["features"].cast<std::vector<std::int64_t>>(),
                             .count = integer("count"),
                             .top = integer("top"),
                             .tokens = integer("tokens"),
                             .window = integer("context_size")};
  const FeatureSurvey found =
      unlocked([&] { return survey_features(*model, dictionary, text, wanted); });
  py::list reports;
  for (const FeatureReport& report : found.reports) {
    py::list contexts;
    for (const FeatureContext& each : report.contexts) {
      contexts.append(
          py::make_tuple(each.position, each.activation, each.tokens, each.activations, each.peak));
    }
    const auto logits = [](const std::vector<FeatureLogit>& all) {
      std::vector<std::pair<std::int32_t, float>> pairs;
      for (const FeatureLogit& each : all) pairs.emplace_back(each.token, each.score);
      return pairs;
    };
    reports.append(py::make_tuple(report.feature, report.density, report.mean, report.largest,
                                  contexts, logits(report.raised), logits(report.lowered)));
  }
  return py::make_tuple(found.tokens, array_of(found.densities), reports);
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

  py::class_<DictionaryTrainingSession>(module, "DictionaryTraining")
      .def(py::init([](const py::dict& options, const FloatArray& first, const FloatArray& targets,
                       const std::string& input, const std::string& output) {
        const DictionaryTraining training = training_of(options);
        const DictionaryTrainingSession::Start start{.first = borrowed(first),
                                                     .targets = borrowed(targets),
                                                     .input_point = input,
                                                     .output_point = output};
        return unlocked([&] { return DictionaryTrainingSession(training, start); });
      }))
      .def("step",
           [](DictionaryTrainingSession& session, const FloatArray& x, const FloatArray& y) {
             return progress_of(unlocked([&] { return session.step(borrowed(x), borrowed(y)); }));
           })
      .def("dictionary", [](const DictionaryTrainingSession& session) {
        return unlocked([&] { return session.dictionary(); });
      });
  module.def("train_dictionary", &train_on_model);
  module.def("evaluate_dictionary", [](const ModelHandle& handle,
                                       const SparseDictionary& dictionary, const std::string& text,
                                       std::int64_t tokens, std::int64_t window) {
    const auto model = handle.get();
    return quality_of(
        unlocked([&] { return evaluate_dictionary(*model, dictionary, text, tokens, window); }));
  });
  module.def("survey_features", &survey);

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
