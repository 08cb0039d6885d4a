#include "server/translations.h"

#include <fmt/format.h>

#include "engine/loaded_model.h"
#include "engine/views/reading_json.h"
#include "engine/views/report_json.h"
#include "server/fields.h"
#include "server/service.h"

namespace heed::server {
namespace {

// Errors of a text are those of its field.
std::vector<std::int32_t> read_source(const std::string& text, const LoadedModel& translator,
                                      const std::string& path) {
  try {
    return translator.encode_source(text, path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    throw FieldError(path, field_code::invalid_value, error.what());
  }
}

SourceTokens read_sources(const Fields& fields, const LoadedModel& translator,
                          const TranslationLimits& limits) {
  const Json* const input = fields.find("input");
  require_field(input != nullptr, "input", field_code::missing, "the request has no \"input\"");
  const std::vector<std::string> texts = fields.strings("input", limits.inputs);
  require_field(!texts.empty(), "input", field_code::invalid_value, "input holds no texts");
  SourceTokens sources;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string path = input->is_string() ? "input" : fmt::format("input[{}]", i);
    sources.add(read_source(texts[i], translator, path));
  }
  return sources;
}

struct Counts {
  std::int64_t read = 0;
  std::int64_t written = 0;
};

OrderedJson choices_of(const LoadedModel& translator,
                       const std::vector<std::vector<TokenHypothesis>>& found, Counts& counts) {
  OrderedJson choices = OrderedJson::array();
  for (std::size_t input = 0; input < found.size(); ++input) {
    for (const TokenHypothesis& hypothesis : found[input]) {
      OrderedJson choice{{"index", choices.size()}, {"input", input}};
      choice.update(hypothesis_json(translator, hypothesis));
      choice.erase("finished");
      choice["finish_reason"] = hypothesis.finished ? "stop" : "length";
      choices.push_back(std::move(choice));
      counts.written += std::ssize(hypothesis.tokens);
    }
  }
  return choices;
}

Reply translate(const Request& request, const TranslationService& service) {
  const RequestCount counted(service.metrics);
  const Json body = request.json();
  const Fields fields(body);
  fields.string("model");  // any name: there is one translator
  const LoadedModel& translator = service.translator();
  TranslationRequest asked = read_translation_request(fields, translator, service.limits);
  asked.search.stop = request.stop;
  const auto found = service.compute.run(
      request.stop, [&] { return translator.translate(asked.sources, asked.search); });
  Counts counts{.read = std::ssize(asked.sources.tokens)};
  OrderedJson choices = choices_of(translator, found, counts);
  service.metrics.prompt_tokens += counts.read;
  service.metrics.predicted_tokens += counts.written;
  OrderedJson unread = OrderedJson::array();  // of each text
  for (std::int64_t i = 0; i < asked.sources.count(); ++i) {
    unread.push_back(unread_json(translator, asked.sources.source(i), PairSide::source));
  }
  Reply reply = json_reply({{"object", "translation"},
                            {"created", service.created},
                            {"model", service.name.empty() ? translator.name : service.name},
                            {"choices", std::move(choices)},
                            {"read", read_json(translator.reading)},
                            {"unread", std::move(unread)},
                            {"usage",
                             {{"prompt_tokens", counts.read},
                              {"completion_tokens", counts.written},
                              {"total_tokens", counts.read + counts.written}}}});
  warn_of_ignored(fields, reply);
  return reply;
}

}  // namespace

TranslationRequest read_translation_request(const Fields& fields, const LoadedModel& translator,
                                            const TranslationLimits& limits) {
  constexpr double highest_penalty = 100;
  const std::int64_t context = translator.architecture().decoder().context;
  TranslationRequest request;
  BeamOptions& search = request.search;
  search.beams = fields.integer("beams", 1, limits.beams).value_or(search.beams);
  search.n_best = fields.integer("n", 1, limits.beams).value_or(1);
  require_field(search.n_best <= search.beams, "n", field_code::invalid_value,
                "n ({}) must not be greater than beams ({})", search.n_best, search.beams);
  search.length_penalty = fields.number("length_penalty", -highest_penalty, highest_penalty)
                              .value_or(search.length_penalty);
  search.max_length = fields.integer("max_tokens", 1, context).value_or(0);
  request.sources = read_sources(fields, translator, limits);
  return request;
}

const LoadedModel& HeldTranslator::get() {
  const std::lock_guard lock(mutex_);
  if (!translator_) translator_.emplace(load_());
  return *translator_;
}

bool HeldTranslator::is_loaded() const {
  const std::lock_guard lock(mutex_);
  return translator_.has_value();
}

TranslationService of_held(HeldTranslator& held, Compute& compute, Metrics& metrics,
                           std::int64_t created) {
  return {.translator = [&held]() -> const LoadedModel& { return held.get(); },
          .compute = compute,
          .metrics = metrics,
          .created = created};
}

void register_translations(Router& router, TranslationService service) {
  router.add("POST", "/v1/translations", [service = std::move(service)](const Request& request) {
    return translate(request, service);
  });
}

void register_translation_service(Router& router, TranslationContext& context) {
  register_operation(router, context.metrics);
  register_models(router,
                  served(context.translator, context.name, context.aliases, context.created));
  register_translations(
      router, {.translator = [&context]() -> const LoadedModel& { return context.translator; },
               .name = context.name,
               .compute = context.compute,
               .metrics = context.metrics,
               .created = context.created,
               .limits = context.limits});
  for (const auto& [method, path] :
       {std::pair("GET", "/props"), std::pair("POST", "/tokenize"),
        std::pair("POST", "/detokenize"), std::pair("POST", "/v1/completions"),
        std::pair("POST", "/v1/chat/completions"), std::pair("POST", "/v1/embeddings")}) {
    const std::string asked = path;  // Clang 14 does not capture structured bindings
    router.add(method, path, [&context, asked](const Request&) {
      return error_reply(
          422, fmt::format("'{}' is a translator and does not answer {}; POST /v1/translations",
                           context.name, asked));
    });
  }
}

}  // namespace heed::server
