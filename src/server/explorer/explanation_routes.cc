// Attribution of a logit to components, heads, neurons, source positions or input tokens.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "engine/views/token_json.h"
#include "microscope/explain/attribution.h"
#include "microscope/explain/logit_gradients.h"
#include "server/explorer/state.h"

namespace heed::server {
namespace {

std::int32_t checked_token(std::int64_t token, const StackSpecification& config) {
  require(token >= 0 && token < config.vocabulary_size, ErrorCode::invalid_argument,
          "token {} is not in the vocabulary of {}", token, config.vocabulary_size);
  return static_cast<std::int32_t>(token);
}

// ?token= (default: the most likely) and ?against=.
LogitQuestion question_of(const Request& request, const StoredTrace& trace, std::int64_t position) {
  LogitQuestion question;
  if (request.parameter("token")) {
    question.token = checked_token(request.integer("token", 0), trace.specification());
  } else {
    const Tensor<float> logits = trace.pass->logits(position, position + 1);
    question.token =
        static_cast<std::int32_t>(std::ranges::max_element(logits.span()) - logits.span().begin());
  }
  if (request.parameter("against")) {
    question.against = checked_token(request.integer("against", 0), trace.specification());
  }
  return question;
}

void add_question(const StoredTrace& trace, const LogitQuestion& question, std::int64_t position,
                  OrderedJson& document) {
  document["token"] = token_json(trace.model(), question.token);
  document["against"] =
      question.against ? token_json(trace.model(), *question.against) : OrderedJson(nullptr);
  document["position"] = position;
}

OrderedJson term_json(const AttributionTerm& term) {
  OrderedJson part{{"name", term.name()}, {"value", json_number(term.value)}};
  if (term.layer >= 0) part["layer"] = term.layer;
  if (term.part == AttributionTerm::Part::head) part["head"] = term.index;
  if (term.part == AttributionTerm::Part::neuron) part["neuron"] = term.index;
  if (term.source >= 0) part["source"] = term.source;
  return part;
}

Reply by_part(const Request& request, const StoredTrace& trace, const LogitQuestion& question,
              std::int64_t position, AttributionUnit unit) {
  Attribution found = attribute_logit(*trace.pass, question, unit, position);
  const std::int64_t top = bounded(request, "top", 0, 0, 1 << 30);
  double rest = 0;
  if (top > 0 && top < std::ssize(found.terms)) {
    std::ranges::stable_sort(found.terms, [](const auto& a, const auto& b) {
      return std::abs(a.value) > std::abs(b.value);
    });
    for (std::size_t i = static_cast<std::size_t>(top); i < found.terms.size(); ++i) {
      rest += found.terms[i].value;
    }
    found.terms.resize(static_cast<std::size_t>(top));
  }
  OrderedJson document{{"logit", json_number(found.logit)}};
  add_question(trace, question, position, document);
  document["rest"] = json_number(rest);
  document["parts"] = OrderedJson::array();
  for (const AttributionTerm& term : found.terms) document["parts"].push_back(term_json(term));
  return json_reply(document);
}

// ?baseline=zero, mean, or token ids: one for all positions, or one for each.
AttributionBaseline baseline_of(const Request& request) {
  const std::string text = request.parameter("baseline").value_or("zero");
  AttributionBaseline baseline;
  if (text == "zero") return baseline;
  if (text == "mean") return {AttributionBaseline::Kind::mean};
  baseline.kind = AttributionBaseline::Kind::tokens;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    const auto [next, error] = std::from_chars(at, end, baseline.tokens.emplace_back());
    require(error == std::errc{} && (next == end || *next == ','), ErrorCode::invalid_argument,
            "baseline is '{}', expected zero, mean, or token ids such as 7 or 7,8,9", text);
    if (next == end) return baseline;
    at = next + 1;
  }
}

Reply by_token(const Request& request, const StoredTrace& trace, const LogitQuestion& question,
               std::int64_t position) {
  require(trace.interventions.empty(), ErrorCode::unsupported,
          "token attributions do not support interventions; trace {} has some", trace.id);
  const IntegrationOptions options{.steps = bounded(request, "steps", 16, 1, 32),
                                   .baseline = baseline_of(request)};
  const IntegratedGradients found =
      integrate_gradients(trace.model().gpt, trace.pass->tokens(), {question, position}, options);
  OrderedJson document{{"logit", json_number(found.metric)},
                       {"baseline", json_number(found.baseline)},
                       {"completeness_error", json_number(found.completeness_error)}};
  add_question(trace, question, position, document);
  document["parts"] = OrderedJson::array();
  for (std::size_t t = 0; t < found.tokens.size(); ++t) {
    document["parts"].push_back({{"name", token_text(trace.model(), trace.pass->tokens()[t])},
                                 {"position", t},
                                 {"value", json_number(found.tokens[t])}});
  }
  return json_reply(document);
}

Reply attribution(State& state, const Request& request) {
  const StoredTrace& trace = trace_of(state, request);
  const std::int64_t position = position_of(request, trace);
  const LogitQuestion question = question_of(request, trace, position);
  const std::string by = one_of(request, "by", {"component", "head", "neuron", "source", "token"});
  if (by == "token") return by_token(request, trace, question, position);
  const AttributionUnit unit = by == "component" ? AttributionUnit::component
                               : by == "head"    ? AttributionUnit::head
                               : by == "neuron"  ? AttributionUnit::neuron
                                                 : AttributionUnit::source;
  return by_part(request, trace, question, position, unit);
}

}  // namespace

void add_explanation_routes(StateRoutes& routes) {
  routes.add("GET", "/api/traces/{id}/attribution", attribution);
}

}  // namespace heed::server
