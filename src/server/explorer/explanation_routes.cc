// Why a trace of one text predicts what it does: attribution of a logit to its parts, the edge of
// attention that it rests on, the gradient of the loss, and the derivation of a number.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "engine/views/derivation.h"
#include "engine/views/report_json.h"
#include "engine/views/token_json.h"
#include "microscope/explain/attribution.h"
#include "microscope/explain/logit_gradients.h"
#include "microscope/explain/loss_flow.h"
#include "microscope/intervene/edge_effects.h"
#include "server/explorer/state.h"

namespace heed::server {
namespace {

void require_unedited(const StoredTrace& trace, const char* what) {
  require(trace.interventions.empty(), ErrorCode::unsupported,
          "{} not support interventions; trace {} has some", what, trace.id);
}

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
  require_unedited(trace, "token attributions do");
  const IntegrationOptions options{.steps = bounded(request, "steps", 16, 1, 32),
                                   .baseline = baseline_of(request)};
  const IntegratedGradients found = integrate_gradients(
      trace.model().transformer, trace.pass->tokens(), {question, position}, options);
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

Reply attribution(TraceState& state, const Request& request) {
  const StoredTrace& trace = one_text_of(state, request, "attribution of a logit is");
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

// ?unit=words: edges go to whole words, as the page shows them.
Reply head_by_effect(TraceState& state, const Request& request) {
  const StoredTrace& trace = one_text_of(state, request, "the edge to show is");
  require_unedited(trace, "effects of edges do");
  const std::int64_t position = position_of(request, trace);
  const std::string unit = one_of(request, "unit", {"tokens", "words"});
  const std::span<const std::int32_t> tokens = trace.pass->tokens();
  const auto shown = edge_to_show(
      trace.model().transformer, tokens,
      {.word = {unit_at(trace.units, position).begin, position + 1},
       .keys = unit == "words" ? token_runs(trace.units) : single_tokens(trace.positions())},
      request.stop);
  OrderedJson document{{"position", position}, {"unit", unit}, {"edge", nullptr}};
  if (shown) document["edge"] = shown_edge_json(trace.model(), tokens, *shown);
  return json_reply(document);
}

// ?token=; by default the token that follows the position in the text, or the most likely one.
std::int32_t predicted_token(const Request& request, const StoredTrace& trace,
                             std::int64_t position) {
  if (request.parameter("token")) {
    return static_cast<std::int32_t>(
        bounded(request, "token", 0, 0, trace.specification().vocabulary_size - 1));
  }
  if (position + 1 < trace.positions()) {
    return trace.pass->tokens()[static_cast<std::size_t>(position) + 1];
  }
  const Tensor<float> logits = trace.pass->logits(position, position + 1);
  return static_cast<std::int32_t>(std::ranges::max_element(logits.span()) - logits.span().begin());
}

Reply gradients(TraceState& state, const Request& request) {
  const StoredTrace& trace = trace_of(state, request);
  require_unedited(trace, "gradients of the loss do");
  const std::int64_t position = position_of(request, trace);
  const std::int32_t token = predicted_token(request, trace, position);
  const LossFlow flow = loss_flow(*trace.pass, token, position, request.stop);
  OrderedJson document{{"position", position},
                       {"token", token_json(trace.model(), token)},
                       {"loss", json_number(flow.loss)}};
  for (const LossFlow::OfStack& stack : flow.stacks) {
    OrderedJson rows = OrderedJson::array();
    OrderedJson norms = OrderedJson::array();
    for (std::size_t row = 0; row < stack.points.size(); ++row) {
      rows.push_back(stream_row_name(stack.points[row]));
      OrderedJson numbers = OrderedJson::array();
      for (const float norm : stack.norms.view()[static_cast<std::int64_t>(row)].span()) {
        numbers.push_back(json_number(norm));
      }
      norms.push_back(std::move(numbers));
    }
    const std::string prefix = stack.site == StackSite::encoder ? "source_" : "";
    document[prefix + "rows"] = std::move(rows);
    document[prefix + "norms"] = std::move(norms);
  }
  return json_reply(document);
}

constexpr std::int64_t usual_terms = 24;

Reply derivation(TraceState& state, const Request& request) {
  StoredTrace& trace = one_text_of(state, request, "the derivation of a number is");
  const PointElement element{.point = request.parameter("point").value_or(""),
                             .layer = request.integer("layer", -1),
                             .head = request.integer("head", 0),
                             .position = position_of(request, trace),
                             .index = request.integer("index", 0),
                             .key = request.integer("key", 0)};
  const auto terms = static_cast<std::size_t>(bounded(request, "terms", usual_terms, 1, 1 << 20));
  return json_reply(
      derivation_json(derive({trace.model(), *trace.pass, *trace.attention}, element), terms));
}

}  // namespace

void add_explanation_routes(TraceRoutes& routes) {
  routes.add("GET", "/api/traces/{id}/attribution", attribution);
  routes.add("GET", "/api/traces/{id}/head", head_by_effect);
  routes.add("GET", "/api/traces/{id}/gradients", gradients);
  routes.add("GET", "/api/traces/{id}/derivation", derivation);
}

}  // namespace heed::server
