// Translators, and models with edits.
#include "bindings.h"
#include "heed/intervention.h"
#include "heed/translate.h"

namespace heed::python {
namespace {

py::list hypotheses_of(const std::vector<Translator::Hypothesis>& hypotheses) {
  py::list all;
  for (const Translator::Hypothesis& one : hypotheses) {
    all.append(py::make_tuple(one.text, one.tokens, one.log_probability, one.score, one.finished));
  }
  return all;
}

// [(source tokens, hypotheses, cross-attention or None)]
py::list translate(const Translator& translator, const std::vector<std::string>& texts,
                   std::int64_t beams, double length_penalty, std::int64_t best,
                   std::int64_t longest, bool alignment) {
  const TranslateOptions options{
      .beams = beams,
      .length_penalty = length_penalty,
      .best = best,
      .longest = longest,
      .alignment = alignment,
      .progress = [poll = SignalPoll{}](std::int64_t, std::int64_t) mutable { poll(); }};
  const auto found = unlocked([&] { return translator.translate(texts, options); });
  py::list all;
  for (const Translator::Translation& one : found) {
    const py::object attention =
        one.cross_attention.empty() ? py::object(py::none()) : array_of(one.cross_attention);
    all.append(py::make_tuple(one.source, hypotheses_of(one.hypotheses), attention));
  }
  return all;
}

std::vector<std::int32_t> tokens_at(const py::dict& edit, const char* name) {
  return edit.contains(name) ? edit[name].cast<std::vector<std::int32_t>>()
                             : std::vector<std::int32_t>{};
}

Edit edit_of(const py::dict& edit) {
  const auto kind = edit["kind"].cast<std::string>();
  Edit made{.where = edit["where"].cast<std::string>(),
            .first_position = edit["first_position"].cast<std::int64_t>()};
  if (kind == "zero") {
    made.change = SetZero{};
  } else if (kind == "scale") {
    made.change = ScaleBy{edit["factor"].cast<float>()};
  } else if (kind == "add") {
    made.change = AddVector{edit["vector"].cast<std::vector<float>>()};
  } else if (kind == "steer") {
    made.change = SteerBy{.factor = edit["factor"].cast<float>(),
                          .toward = tokens_at(edit, "toward"),
                          .away = tokens_at(edit, "away")};
  } else if (kind == "set") {
    made.change = SetRow{edit["vector"].cast<std::vector<float>>()};
  } else if (kind == "mean") {
    made.change = SetMean{edit["texts"].cast<std::vector<std::vector<std::int32_t>>>()};
  } else if (kind == "take") {
    made.change = TakeFromText{tokens_at(edit, "tokens")};
  } else if (kind == "freeze") {
    made.change = FreezePattern{tokens_at(edit, "tokens")};
  } else if (kind == "cut") {
    CutEdges cut;
    for (const auto& [query, key] :
         edit["edges"].cast<std::vector<std::pair<std::int64_t, std::int64_t>>>()) {
      cut.edges.push_back({query, key});
    }
    if (edit["renormalise"].cast<bool>()) cut.rest = CutEdges::Rest::renormalised;
    made.change = std::move(cut);
  } else {
    throw Error(ErrorCode::invalid_argument, "there is no kind of edit '" + kind + "'");
  }
  return made;
}

// A model with edits, which keeps the model.
class Edited {
 public:
  Edited(const ModelHandle& handle, const std::vector<py::dict>& edits)
      : model_(handle.get()), edited_(make(*model_, edits)) {}

  py::array all_logits(const TokenArray& tokens) const {
    const std::vector<std::int32_t> all = vector_of(tokens);
    return array_of(unlocked([&] { return edited_.all_logits(all); }));
  }
  py::tuple generate(const TokenArray& prompt, std::int64_t max_new_tokens, double temperature,
                     std::uint64_t seed) const {
    const std::vector<std::int32_t> tokens = vector_of(prompt);
    SignalPoll poll;
    const Model::Generation found = unlocked([&] {
      return edited_.generate(tokens,
                              {.max_new_tokens = max_new_tokens,
                               .sampling = {.temperature = temperature, .seed = seed}},
                              [&](std::string_view) {
                                poll();
                                return true;
                              });
    });
    return py::make_tuple(found.tokens, found.text, found.finish_reason);
  }
  // {name: array}
  py::dict trace(const TokenArray& tokens, const std::vector<std::string>& points) const {
    const std::vector<std::int32_t> all = vector_of(tokens);
    const Trace found = unlocked([&] { return edited_.trace(all, {.points = points}); });
    py::dict arrays;
    for (const TracedArray& array : found.arrays) {
      arrays[py::str(array.name)] = array_of(array.values);
    }
    return arrays;
  }

 private:
  static EditedModel make(const Model& model, const std::vector<py::dict>& edits) {
    std::vector<Edit> all;
    for (const py::dict& edit : edits) all.push_back(edit_of(edit));
    return unlocked([&] { return EditedModel(model, all); });
  }

  std::shared_ptr<const Model> model_;
  EditedModel edited_;
};

}  // namespace

void bind_translation(py::module_& module) {
  py::class_<Translator, std::shared_ptr<Translator>>(module, "Translator")
      .def_static(
          "load",
          [](const std::string& name) {
            return unlocked([&] { return std::make_shared<Translator>(Translator::load(name)); });
          })
      .def("decoder_tokens",
           [](const Translator& translator, const std::string& text) {
             return decoder_tokens(translator, text);
           })
      .def("decoder_input",
           [](const Translator& translator, const TokenArray& tokens) {
             return decoder_tokens(translator, vector_of(tokens));
           })
      .def("next_tokens",
           [](const Translator& translator, const TokenArray& target) {
             return tokens_after(translator, vector_of(target));
           })
      .def("point_names", [](const Translator& translator) { return point_names(translator); })
      .def("points_named", [](const Translator& translator,
                              const std::string& name) { return points_named(translator, name); })
      .def("run",
           [](const Translator& translator, const TokenArray& source, const TokenArray& target,
              const PythonHooks& hooks, const PythonHooks& gradient_hooks,
              const TargetLogits& logits) {
             const RunOptions options = run_options(hooks, gradient_hooks, logits);
             return array_of(
                 unlocked([&] { return run(translator, pair_of(source, target), options); }));
           })
      .def("losses",
           [](const Translator& translator, const TokenArray& source, const TokenArray& target,
              const PythonHooks& hooks) {
             const RunOptions options = run_options(hooks);
             return array_of(unlocked(
                 [&] { return next_token_losses(translator, pair_of(source, target), options); }));
           })
      .def("translate_greedily",
           [](const Translator& translator, const TokenArray& source, std::int64_t longest,
              const PythonHooks& hooks) {
             const std::vector<std::int32_t> tokens = vector_of(source);
             const RunOptions options = run_options(hooks);
             return hypotheses_of({unlocked(
                 [&] { return translate_greedily(translator, tokens, longest, options); })});
           })
      .def_property_readonly("name", &Translator::name)
      .def("encode", &Translator::encode)
      .def("decode", [](const Translator& translator,
                        const TokenArray& tokens) { return translator.decode(vector_of(tokens)); })
      .def("source_pieces",
           [](const Translator& translator, const TokenArray& tokens) {
             return translator.source_pieces(vector_of(tokens));
           })
      .def("target_pieces",
           [](const Translator& translator, const TokenArray& tokens) {
             return translator.target_pieces(vector_of(tokens));
           })
      .def("translate", &translate)
      .def("cross_attention",
           [](const Translator& translator, const TokenArray& source, const TokenArray& target) {
             const std::vector<std::int32_t> from = vector_of(source), to = vector_of(target);
             return array_of(unlocked([&] { return translator.cross_attention(from, to); }));
           });

  py::class_<Edited>(module, "Edited")
      .def(py::init<const ModelHandle&, const std::vector<py::dict>&>())
      .def("all_logits", &Edited::all_logits)
      .def("generate", &Edited::generate)
      .def("trace", &Edited::trace);
}

}  // namespace heed::python
