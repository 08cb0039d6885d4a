// Next-token predictions of a trace: as a table, compared with another trace or with the same texts
// without interventions, and by layer. Of two texts, those of the target.
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "engine/views/report_json.h"
#include "engine/views/token_json.h"
#include "generate/sampler.h"
#include "microscope/explain/logit_lens.h"
#include "server/explorer/state.h"
#include "server/sampling_fields.h"

namespace heed::server {
namespace {

std::int64_t vocabulary_of(const StoredTrace& trace) {
  return trace.model().stack(PairSide::target).vocabulary_size;
}

std::string token_text_of(const StoredTrace& trace, std::int32_t token) {
  return token_text(trace.model(), token);
}

// The token that follows a position in the text; none after the last one.
std::optional<std::int32_t> following(const StoredTrace& trace, std::int64_t position) {
  if (position + 1 >= trace.positions()) return std::nullopt;
  return trace.tokens(PairSide::target)[static_cast<std::size_t>(position) + 1];
}

Reply next(TraceState& state, const Request& request) {
  const StoredTrace& trace = trace_of(state, request);
  const std::int64_t position = position_of(request, trace);
  const SamplingOptions sampling = read_sampling(request);
  const std::int64_t vocabulary = vocabulary_of(trace);
  const std::int64_t limit = bounded(request, "limit", 20, 0, vocabulary);
  const std::int64_t offset = bounded(request, "offset", 0, 0, vocabulary);
  const Tensor<float> logits = trace.pass->logits(position, position + 1);
  const auto history = trace.tokens(PairSide::target).first(static_cast<std::size_t>(position) + 1);
  const std::vector<Candidate> all = trace_candidates(logits.span(), sampling, history);

  const std::string wanted = request.parameter("find").value_or("");
  OrderedJson rows = OrderedJson::array();
  std::int64_t found = 0;
  for (const Candidate& candidate : all) {
    const bool matches =
        wanted.empty() || token_text_of(trace, candidate.token).find(wanted) != std::string::npos;
    if (!matches) continue;
    if (found >= offset && (limit == 0 || found < offset + limit)) {
      rows.push_back(candidate_json(trace.model().token_bytes(candidate.token), candidate));
    }
    ++found;
  }
  OrderedJson actual = nullptr;
  if (const auto token = following(trace, position)) {
    const std::vector<double> probabilities = probabilities_of(logits.span());
    actual = {{"token", token_json(trace.model(), *token)},
              {"probability", json_number(probabilities[static_cast<std::size_t>(*token)])}};
  }
  return json_reply({{"position", position},
                     {"sampling", sampling_json(sampling)},
                     {"vocabulary", vocabulary},
                     {"kept", std::ranges::count_if(all, &Candidate::kept)},
                     {"entropy", json_number(entropy_nats(all))},
                     {"found", found},
                     {"actual", std::move(actual)},
                     {"candidates", std::move(rows)}});
}

// Tokens in descending order of probability, and the rank of each.
struct Prediction {
  std::vector<Candidate> ranked;
  std::vector<std::size_t> rank_of;  // by token

  Prediction(const StoredTrace& trace, std::int64_t position) {
    const Tensor<float> logits = trace.pass->logits(position, position + 1);
    ranked = trace_candidates(logits.span(), SamplingOptions::unmodified(), {});
    rank_of.resize(ranked.size());
    for (std::size_t i = 0; i < ranked.size(); ++i) {
      rank_of[static_cast<std::size_t>(ranked[i].token)] = i;
    }
  }

  const Candidate& of(std::int32_t token) const {
    return ranked[rank_of[static_cast<std::size_t>(token)]];
  }
  OrderedJson json(std::int32_t token) const {
    const Candidate& candidate = of(token);
    return {{"logit", json_number(static_cast<float>(candidate.logit))},
            {"probability", json_number(candidate.probability(SamplingStage::model))},
            {"rank", candidate.rank}};
  }
};

Reply compare(TraceState& state, const Request& request) {
  const StoredTrace& before = trace_of(state, request);
  const StoredTrace& after = state.traces.use(request.in_path("other"));
  const std::int64_t vocabulary = vocabulary_of(before);
  require(vocabulary_of(after) == vocabulary, ErrorCode::invalid_argument,
          "{} and {} are of models with {} and {} tokens", before.id, after.id, vocabulary,
          vocabulary_of(after));
  const std::int64_t top = bounded(request, "top", 12, 1, vocabulary);
  const Prediction was(before, position_of(request, before));
  const Prediction is(after, position_of(request, after));
  std::vector<std::int32_t> tokens;
  for (const Prediction* prediction : {&was, &is}) {
    for (const Candidate& candidate :
         std::span(prediction->ranked).first(static_cast<std::size_t>(top))) {
      if (std::ranges::find(tokens, candidate.token) == tokens.end()) {
        tokens.push_back(candidate.token);
      }
    }
  }
  OrderedJson rows = OrderedJson::array();
  for (const std::int32_t token : tokens) {
    rows.push_back({{"token", token},
                    {"text", token_text_of(before, token)},
                    {"before", was.json(token)},
                    {"after", is.json(token)}});
  }
  return json_reply(
      {{"kl", json_number(divergence_nats(was.ranked, is.ranked))}, {"rows", std::move(rows)}});
}

// What the interventions change after every position, against the same texts without them.
Reply effect(TraceState& state, const Request& request) {
  const StoredTrace& trace = trace_of(state, request);
  const StoredTrace unedited = state.traces.without_interventions(trace, request.stop);
  const auto effects = prediction_effects(*unedited.pass, *trace.pass, request.stop);
  return json_reply({{"positions", effects_json(trace.model(), effects)}});
}

// `divergence` none: null.
OrderedJson lens_cell(const StoredTrace& trace, const LensCell& cell) {
  OrderedJson tokens = OrderedJson::array();
  OrderedJson probabilities = OrderedJson::array();
  for (const LensToken& token : cell.top) {
    tokens.push_back(token_json(trace.model(), token.token));
    probabilities.push_back(json_number(token.probability));
  }
  return {{"tokens", std::move(tokens)},
          {"probabilities", std::move(probabilities)},
          {"entropy", json_number(cell.entropy)},
          {"divergence", json_number(cell.divergence)}};
}

std::vector<std::int64_t> chosen_positions(const Request& request, const StoredTrace& trace) {
  std::vector<std::int64_t> positions = index_list(request, "positions");
  for (std::int64_t& position : positions) position = checked_position(position, trace);
  if (positions.empty()) {
    for (std::int64_t t = 0; t < trace.positions(); ++t) positions.push_back(t);
  }
  std::ranges::sort(positions);
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  return positions;
}

Reply lens(TraceState& state, const Request& request) {
  const StoredTrace& trace = trace_of(state, request);
  const LensOptions options{.top = bounded(request, "top", 3, 1, vocabulary_of(trace)),
                            .positions = chosen_positions(request, trace)};
  const LogitLens seen = look_through_layers(*trace.pass, options);
  OrderedJson names = OrderedJson::array();
  OrderedJson cells = OrderedJson::array();  // by row and position
  for (std::int64_t point = 0; point < std::ssize(seen.points); ++point) {
    names.push_back(stream_row_name(seen.points[static_cast<std::size_t>(point)]));
    OrderedJson& row = cells.emplace_back(OrderedJson::array());
    for (std::int64_t i = 0; i < seen.positions; ++i) {
      const LensCell& cell = seen.at(point, i);
      row.push_back(lens_cell(trace, cell));
    }
  }
  return json_reply(
      {{"rows", std::move(names)}, {"positions", options.positions}, {"cells", std::move(cells)}});
}

}  // namespace

void add_prediction_routes(TraceRoutes& routes) {
  routes.add("GET", "/api/traces/{id}/next", next);
  routes.add("GET", "/api/traces/{id}/compare/{other}", compare);
  routes.add("GET", "/api/traces/{id}/effect", effect);
  routes.add("GET", "/api/traces/{id}/lens", lens);
}

}  // namespace heed::server
