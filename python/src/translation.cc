// What translators have beside other models.
#include "bindings.h"
#include "heed/intervention.h"

namespace heed::python {
namespace {

py::list hypotheses_of(const std::vector<Model::Hypothesis>& hypotheses) {
  py::list all;
  for (const Model::Hypothesis& one : hypotheses) {
    all.append(py::make_tuple(one.text, one.tokens, one.log_probability, one.score, one.finished));
  }
  return all;
}

// [(source tokens, hypotheses, cross-attention or None)]
py::list translate(const ModelHandle& handle, const std::vector<std::string>& texts,
                   std::int64_t beams, double length_penalty, std::int64_t n_best,
                   std::int64_t max_length, bool alignment) {
  const auto translator = handle.get();
  const TranslateOptions options{
      .beams = beams,
      .length_penalty = length_penalty,
      .n_best = n_best,
      .max_length = max_length,
      .alignment = alignment,
      .progress = [poll = SignalPoll{}](std::int64_t, std::int64_t) mutable { poll(); }};
  const auto found = unlocked([&] { return translator->translate(texts, options); });
  py::list all;
  for (const Model::Translation& one : found) {
    const py::object attention =
        one.cross_attention.empty() ? py::object(py::none()) : array_of(one.cross_attention);
    all.append(py::make_tuple(one.source, hypotheses_of(one.hypotheses), attention));
  }
  return all;
}

}  // namespace

void bind_translation(py::module_& module, py::class_<ModelHandle>& model) {
  module.def("is_translator",
             [](const std::string& name) { return unlocked([&] { return is_translator(name); }); });
  model
      .def("decoder_tokens",
           [](const ModelHandle& handle, const std::string& text) {
             return decoder_tokens(*handle.get(), text);
           })
      .def("decoder_input",
           [](const ModelHandle& handle, const TokenArray& tokens) {
             return decoder_tokens(*handle.get(), vector_of(tokens));
           })
      .def("source_texts",
           [](const ModelHandle& handle, const TokenArray& tokens) {
             return bytes_of(handle.get()->source_pieces(vector_of(tokens)));
           })
      .def("translate_greedily",
           [](const ModelHandle& handle, const TokenArray& source, std::int64_t max_length,
              const PythonHooks& hooks) {
             const auto translator = handle.get();
             const std::vector<std::int32_t> tokens = vector_of(source);
             const RunOptions options = run_options(hooks);
             return hypotheses_of({unlocked(
                 [&] { return translate_greedily(*translator, tokens, max_length, options); })});
           })
      .def("translate", &translate)
      .def("cross_attention",
           [](const ModelHandle& handle, const TokenArray& source, const TokenArray& target) {
             const auto translator = handle.get();
             const std::vector<std::int32_t> from = vector_of(source), to = vector_of(target);
             return array_of(unlocked([&] { return translator->cross_attention(from, to); }));
           });
}

}  // namespace heed::python
