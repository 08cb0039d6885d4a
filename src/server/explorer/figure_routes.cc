// Figures of a trace as files.
#include <algorithm>

#include "base/error.h"
#include "engine/views/token_json.h"
#include "generate/sampler.h"
#include "microscope/attention/head_scan.h"
#include "microscope/explain/logit_lens.h"
#include "microscope/figures/figure.h"
#include "server/explorer/array_reply.h"
#include "server/explorer/state.h"

namespace heed::server {
namespace {

constexpr std::size_t shown_characters = 400;  // of the text, in a caption
constexpr std::size_t bars = 20;
constexpr std::int64_t max_map = 2048;  // positions of an attention map

std::vector<std::string> token_labels(const StoredTrace& trace, PairSide side = PairSide::target) {
  std::vector<std::string> labels;
  for (const std::int32_t token : trace.tokens(side)) {
    labels.push_back(token_text(trace.model(), token, side));
  }
  return labels;
}

std::vector<std::string> numbered(std::int64_t count) {
  std::vector<std::string> labels;
  for (std::int64_t i = 0; i < count; ++i) labels.push_back(std::to_string(i));
  return labels;
}

std::string joined_text(const StoredTrace& trace, PairSide side) {
  std::string text;
  for (const std::string& label : token_labels(trace, side)) text += label;
  if (text.size() > shown_characters) {
    std::size_t end = shown_characters;
    while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text = text.substr(0, end) + "…";
  }
  return text;
}

std::string caption(const StoredTrace& trace) {
  std::string line = fmt::format("Model {}, ", trace.model().name);
  if (trace.has_two_texts()) {
    line += fmt::format("source “{}”, target “{}”.", joined_text(trace, PairSide::source),
                        joined_text(trace, PairSide::target));
  } else {
    line += fmt::format("text “{}”.", joined_text(trace, PairSide::target));
  }
  if (!trace.interventions.empty()) {
    line += fmt::format(" With {} interventions.", trace.interventions.size);
  }
  return line;
}

Figure attention_figure(const StoredTrace& trace, const Request& request) {
  const AttentionSite site =
      trace.site(request.parameter("site").value_or(trace.has_two_texts() ? "cross" : "self"));
  const StackSpecification& stack = trace.architecture().of(site.stack);
  const std::int64_t layer = checked_layer(request.integer("layer", 0), stack);
  const std::int64_t head =
      bounded(request, "head", 0, 0, attention_of(trace.architecture(), site).query_heads - 1);
  const std::int64_t queries = trace.queries(site), keys = trace.keys(site);
  if (std::max(queries, keys) > max_map) {
    throw HttpError(413, fmt::format("a map of {} positions is larger than {}: take a part as an "
                                     "array",
                                     std::max(queries, keys), max_map));
  }
  const Tensor<float> pattern = trace.attention->region(
      site, {.layer = layer, .head = head, .query_end = queries, .key_end = keys});
  const std::string name =
      trace.has_two_texts() ? fmt::format("{} ", site_name(site)) : std::string();
  return draw_heat_map({.values = pattern,
                        .row_labels = token_labels(trace, trace.query_side(site)),
                        .column_labels = token_labels(trace, trace.key_side(site)),
                        .row_axis = "query",
                        .column_axis = "key",
                        .value_name = "attention",
                        .scale = FigureScale::share},
                       {.title = fmt::format("Attention of {}head {}.{}", name, layer, head),
                        .caption = caption(trace)});
}

Figure heads_figure(const StoredTrace& trace, const Request& request) {
  const std::string statistic = request.parameter("statistic").value_or("content_weight");
  const HeadStatistic* const shown = find_head_statistic(statistic);
  require(shown != nullptr, ErrorCode::invalid_argument, "there is no statistic '{}' of heads",
          statistic.substr(0, 40));
  const HeadScan scan = scan_heads(*trace.pass, {}, request.stop);
  Tensor<float> values(Shape{scan.layers(), scan.heads()});
  for (std::int64_t layer = 0; layer < scan.layers(); ++layer) {
    for (std::int64_t head = 0; head < scan.heads(); ++head) {
      values.view()(layer, head) = static_cast<float>(scan.statistics(layer, head).*shown->value);
    }
  }
  return draw_heat_map(
      {.values = std::as_const(values).view(),
       .row_labels = numbered(scan.layers()),
       .column_labels = numbered(scan.heads()),
       .row_axis = "layer",
       .column_axis = "head",
       .value_name = statistic},
      {.title = "Statistics of every head: " + statistic, .caption = caption(trace)});
}

Figure lens_figure(const StoredTrace& trace) {
  const LogitLens lens = look_through_layers(*trace.pass, {.top = 1});
  const auto rows = std::ssize(lens.points);
  Tensor<float> values(Shape{rows, lens.positions});
  std::vector<std::string> labels, texts;
  for (std::int64_t row = 0; row < rows; ++row) {
    const Point& point = lens.points[static_cast<std::size_t>(row)];
    labels.push_back(point.kind == PointKind::residual_post ? "final_post"
                                                            : fmt::format("{}_pre", point.layer));
    for (std::int64_t t = 0; t < lens.positions; ++t) {
      const LensToken& best = lens.at(row, t).top.front();
      values.view()(row, t) = static_cast<float>(best.probability);
      texts.push_back(token_text(trace.model(), best.token));
    }
  }
  return draw_heat_map(
      {.values = std::as_const(values).view(),
       .row_labels = std::move(labels),
       .column_labels = token_labels(trace),
       .row_axis = "stream",
       .column_axis = "after",
       .value_name = "probability",
       .scale = FigureScale::share,
       .cell_texts = std::move(texts)},
      {.title = "Logit lens: the prediction of each layer", .caption = caption(trace)});
}

Figure next_figure(const StoredTrace& trace, const Request& request) {
  const std::int64_t position = position_of(request, trace);
  const Tensor<float> logits = trace.pass->logits(position, position + 1);
  const std::vector<Candidate> all =
      trace_candidates(logits.span(), SamplingOptions::unmodified(), {});
  BarFigure figure{.value_name = "probability"};
  for (const Candidate& candidate : std::span(all).first(std::min(bars, all.size()))) {
    figure.labels.push_back(token_text(trace.model(), candidate.token));
    figure.values.push_back(candidate.probability(SamplingStage::model));
  }
  return draw_bars(figure, {.title = fmt::format("Next-token prediction at position {}", position),
                            .caption = caption(trace)});
}

Reply figure(TraceState& state, const Request& request) {
  const std::string kind = one_of(request, "kind", {"attention", "heads", "lens", "next"});
  const bool is_of_one_text = kind == "heads" || kind == "lens";
  const StoredTrace& trace = is_of_one_text
                                 ? one_text_of(state, request, "the figure of heads or a lens is")
                                 : trace_of(state, request);
  const std::string format = one_of(request, "format", {"svg", "png", "html"});
  const Figure drawn = kind == "attention" ? attention_figure(trace, request)
                       : kind == "heads"   ? heads_figure(trace, request)
                       : kind == "lens"    ? lens_figure(trace)
                                           : next_figure(trace, request);
  Reply reply = format == "png"   ? text_reply(png_bytes(drawn), "image/png")
                : format == "svg" ? text_reply(svg_text(drawn), "image/svg+xml")
                                  : text_reply(html_text(drawn), "text/html; charset=utf-8");
  reply.headers.emplace_back("Content-Disposition",
                             "attachment; filename=\"heed-" + kind + "." + format + "\"");
  return reply;
}

}  // namespace

void add_figure_routes(TraceRoutes& routes) {
  routes.add("GET", "/api/traces/{id}/figure", figure);
}

}  // namespace heed::server
