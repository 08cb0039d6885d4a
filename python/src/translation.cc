// Translators.
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
      .n_best = best,
      .max_length = longest,
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
      .def_property_readonly(
          "read", [](const Translator& translator) { return read_tuple(read_texts(translator)); })
      .def("unread",
           [](const Translator& translator, const std::string& source) {
             return unread_tuple(unread_words(translator, source));
           })
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
      // The same translator with edits in all of its passes.
      .def("with_edits",
           [](const Translator& translator, const std::vector<py::dict>& edits) {
             const std::vector<Edit> all = edits_of(edits);
             return unlocked([&]() -> std::shared_ptr<Translator> {
               return std::make_shared<EditedTranslator>(translator, all);
             });
           })
      .def("cross_attention",
           [](const Translator& translator, const TokenArray& source, const TokenArray& target) {
             const std::vector<std::int32_t> from = vector_of(source), to = vector_of(target);
             return array_of(unlocked([&] { return translator.cross_attention(from, to); }));
           });
}

}  // namespace heed::python
