// Models: loading, tokens, logits, losses, generations, weights.
#include <optional>

#include "bindings.h"
#include "heed/generation.h"
#include "heed/intervention.h"
#include "heed/tokens.h"
#include "heed/weights.h"

namespace heed::python {
namespace {

// A list of (name, default).
py::list sampling_defaults() {
  py::list defaults;
  for (const SamplingOption& option : sampling_options()) {
    std::visit(
        [&](auto member) {
          defaults.append(py::make_tuple(option.name, SamplingOptions{}.*member));
        },
        option.member);
  }
  return defaults;
}

SamplingOptions sampling_of(const py::dict& given) {
  SamplingOptions options;
  for (const SamplingOption& option : sampling_options()) {
    if (!given.contains(option.name)) continue;
    const py::object value = given[option.name];
    const py::str text = py::isinstance<py::str>(value) ? py::repr(value) : py::str(value);
    const std::string problem = option.read(options, text.cast<std::string>());
    if (!problem.empty()) {
      throw Error(ErrorCode::invalid_argument, std::string(option.name) + " " + problem);
    }
  }
  return options;
}

// A generation that Python advances.
class Steps {
 public:
  Steps(std::shared_ptr<const Model> model, std::vector<std::int32_t> prompt,
        const Model::GenerateOptions& options, const RunOptions& run)
      : model_(std::move(model)), steps_(*model_, std::move(prompt), options, run) {}

  // (token or None, text, logits (V)), or None at the end.
  py::object next() {
    if (running_) {
      throw Error(ErrorCode::invalid_argument,
                  "the generation is being advanced by another thread or by one of its own hooks");
    }
    running_ = true;
    const Running until_the_end{running_};
    std::optional<GenerationSteps::Step> step = unlocked([&] { return steps_.next(); });
    if (!step) return py::none();
    return py::make_tuple(step->token ? py::cast(*step->token) : py::object(py::none()),
                          py::str(step->text), array_of(step->logits));
  }
  py::tuple finished() const {
    const Model::Generation all = steps_.generation();
    return py::make_tuple(all.tokens, all.text, all.finish_reason);
  }

 private:
  struct Running {
    bool& running;
    ~Running() { running = false; }
  };

  std::shared_ptr<const Model> model_;
  GenerationSteps steps_;
  bool running_ = false;
};

std::unique_ptr<Steps> generate(const ModelHandle& handle, const TokenArray& prompt,
                                std::int64_t max_new_tokens, const py::dict& sampling,
                                const std::vector<std::string>& stop, const py::dict& how,
                                const PythonHooks& hooks) {
  return std::make_unique<Steps>(
      handle.get(), vector_of(prompt),
      Model::GenerateOptions{.max_new_tokens = max_new_tokens,
                             .sampling = sampling_of(sampling),
                             .stop = stop,
                             .shift_context = how["shift_context"].cast<bool>(),
                             .ignore_end_of_text = how["ignore_end_of_text"].cast<bool>()},
      run_options(hooks));
}

py::list predict(const ModelHandle& handle, const TokenArray& tokens, std::size_t most) {
  const auto model = handle.get();
  const std::vector<std::int32_t> all = vector_of(tokens);
  const std::vector<Model::Next> next = unlocked([&] { return model->predict(all, {}, most); });
  py::list found;
  for (const Model::Next& candidate : next) {
    found.append(py::make_tuple(candidate.token, py::bytes(candidate.text), candidate.logit,
                                candidate.probability));
  }
  return found;
}

// As Python's Config reads them.
py::dict dimensions_of(const ModelArchitecture& known) {
  py::dict all;
  all["vocabulary"] = known.vocabulary;
  all["context"] = known.context;
  all["channels"] = known.channels;
  all["layers"] = known.layers;
  all["heads"] = known.query_heads;
  all["key_value_heads"] = known.key_value_heads;
  all["head_size"] = known.head_size;
  all["feed_forward"] = known.feed_forward;
  all["parameters"] = known.parameters;
  all["positions"] = known.positions;
  all["rotary_base"] = known.rotary_base;
  all["rotary_channels"] = known.rotary_channels;
  all["windows"] = known.windows;
  all["query_key_norm"] = known.query_key_norm;
  all["norm"] = known.norm;
  all["norm_placement"] = known.norm_placement;
  all["norm_epsilon"] = known.norm_epsilon;
  all["parallel"] = known.parallel;
  all["activation"] = known.activation;
  all["gated"] = known.gated;
  all["biases"] = known.biases;
  all["tied_unembedding"] = known.tied_unembedding;
  all["dtype"] = known.weights;
  all["device"] = known.device;
  return all;
}

// In the types that heed has, of the names that Python gives them.
LoadOptions load_options(const std::string& weights, const std::string& cache) {
  const auto weight_type = [&]() -> WeightType {
    if (weights.empty()) return WeightType::as_stored;
    if (weights == "f32") return WeightType::f32;
    if (weights == "bf16") return WeightType::bf16;
    if (weights == "int8") return WeightType::int8;
    if (weights == "int4") return WeightType::int4;
    throw Error(ErrorCode::invalid_argument,
                "there is no dtype '" + weights + "': expected f32, bf16, int8 or int4");
  };
  const auto cache_type = [&]() -> KeyValueType {
    if (cache == "f32") return KeyValueType::f32;
    if (cache == "bf16") return KeyValueType::bf16;
    if (cache == "int8") return KeyValueType::int8;
    throw Error(ErrorCode::invalid_argument,
                "there is no cache_dtype '" + cache + "': expected f32, bf16 or int8");
  };
  return {.weights = weight_type(), .cache = cache_type()};
}

}  // namespace

std::vector<py::bytes> bytes_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

void bind_model(py::module_& module) {
  py::class_<Steps>(module, "Steps").def("next", &Steps::next).def("finished", &Steps::finished);

  py::class_<ModelHandle> bound(module, "Model");
  bind_translation(module, bound);
  bound
      .def_static("load",
                  [](const std::string& name, const std::string& weights, const std::string& cache,
                     bool pack, const std::string& device) {
                    LoadOptions options = load_options(weights, cache);
                    options.pack = pack;
                    options.device = device;
                    return ModelHandle(unlocked([&] { return Model::load(name, options); }));
                  })
      .def("close", &ModelHandle::close)
      .def_property_readonly("closed", &ModelHandle::closed)
      .def_property_readonly("name", [](const ModelHandle& handle) { return handle.get()->name(); })
      .def_property_readonly(
          "has_tokenizer", [](const ModelHandle& handle) { return handle.get()->has_tokenizer(); })
      .def_property_readonly(
          "read", [](const ModelHandle& handle) { return read_tuple(read_texts(*handle.get())); })
      .def("unread",
           [](const ModelHandle& handle, const std::string& text) {
             return unread_tuple(unread_words(*handle.get(), text));
           })
      .def("part_tokens", [](const ModelHandle& handle,
                             const std::string& text) { return part_tokens(*handle.get(), text); })
      .def("encode", [](const ModelHandle& handle,
                        const std::string& text) { return handle.get()->encode(text); })
      .def("point_names", [](const ModelHandle& handle) { return point_names(*handle.get()); })
      .def("points_named",
           [](const ModelHandle& handle, const std::string& name) {
             return points_named(*handle.get(), name);
           })
      // The same model with hooks, and with edits, in all of its passes.
      .def("with_hooks",
           [](const ModelHandle& handle, const PythonHooks& hooks) {
             return ModelHandle(with_hooks(*handle.get(), hooks_of(hooks)));
           })
      .def("with_edits",
           [](const ModelHandle& handle, const std::vector<py::dict>& edits) {
             const auto model = handle.get();
             const std::vector<Edit> all = edits_of(edits);
             return ModelHandle(unlocked([&] { return Model(EditedModel(*model, all)); }));
           })
      .def_property_readonly(
          "is_translator", [](const ModelHandle& handle) { return handle.get()->is_translator(); })
      .def("dimensions",
           [](const ModelHandle& handle, const std::string& stack) {
             return dimensions_of(handle.get()->architecture(stack));
           })
      .def("prompt_tokens",
           [](const ModelHandle& handle, const std::string& text) {
             return prompt_tokens(*handle.get(), text);
           })
      .def("decode",
           [](const ModelHandle& handle, const TokenArray& tokens) {
             const auto model = handle.get();
             const std::string text = model->decode(vector_of(tokens));
             // A translation is whole characters.
             return model->is_translator() ? py::object(py::str(text))
                                           : py::object(py::bytes(text));
           })
      .def("token_texts",
           [](const ModelHandle& handle, const TokenArray& tokens) {
             const auto model = handle.get();
             const std::vector<std::int32_t> all = vector_of(tokens);
             return bytes_of(model->is_translator() ? model->target_pieces(all)
                                                    : token_texts(*model, all));
           })
      .def("beginning_token",
           [](const ModelHandle& handle) { return beginning_token(*handle.get()); })
      .def("end_token", [](const ModelHandle& handle) { return end_token(*handle.get()); })
      .def("run",
           [](const ModelHandle& handle, const PassTokens& read, const py::dict& given) {
             const auto model = handle.get();
             const RunOptions options = run_options(given);
             return array_of(unlocked([&] { return run(*model, batch_of(read), options); }));
           })
      .def("losses",
           [](const ModelHandle& handle, const PassTokens& read, const PythonHooks& hooks) {
             const auto model = handle.get();
             const RunOptions options = run_options(hooks);
             return array_of(
                 unlocked([&] { return next_token_losses(*model, batch_of(read), options); }));
           })
      .def("next_tokens",
           [](const ModelHandle& handle, const TokenArray& tokens) {
             return tokens_after(*handle.get(), vector_of(tokens));
           })
      .def("embeddings",
           [](const ModelHandle& handle, const TokenArray& tokens) {
             const auto model = handle.get();
             const std::vector<std::int32_t> all = vector_of(tokens);
             return array_of(unlocked([&] { return model->embeddings(all); }));
           })
      .def("generate", &generate)
      .def("predict", &predict)
      .def("weight_names", [](const ModelHandle& handle) { return weight_names(*handle.get()); })
      .def("weight", [](const ModelHandle& handle, const std::string& name) {
        const auto model = handle.get();
        py::array view = array_of(weight(*model, name), model);
        // The unembedding of a tied model is the token embedding, transposed: changed there.
        const bool is_another = name == "unembed.W_U" && model->architecture().tied_unembedding;
        return is_another || !computes_with_views(*model) ? constant(std::move(view)) : view;
      });

  module.def("end_computing", &end_computing);
  module.def("sampling_defaults", &sampling_defaults);
  module.def("set_threads", &set_threads);
  module.def("threads", &threads);
  module.def("set_f32_products",
             [](const std::string& name) { set_f32_products(parse_f32_products(name)); });
  module.def("f32_products", [] { return f32_products_name(f32_products()); });
  module.def("allow_integer_prompts",
             [](bool allowed) { allowed ? allow_integer_prompts() : refuse_integer_prompts(); });
}

}  // namespace heed::python
