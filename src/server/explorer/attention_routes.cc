// Attention of a trace: thumbnails of all heads, regions, tiles, rows and columns of a head, and
// the computation of a head for one word.
#include <algorithm>

#include "base/error.h"
#include "engine/views/report_json.h"
#include "engine/views/token_json.h"
#include "microscope/attention/word_walk.h"
#include "server/explorer/array_reply.h"
#include "server/explorer/state.h"
#include "server/explorer/word_attention.h"

namespace heed::server {
namespace {

struct HeadPath {
  std::int64_t layer;
  std::int64_t head;

  HeadPath(const Request& request, const StoredTrace& trace)
      : layer(checked_layer(request.integer_in_path("layer"), trace.specification())),
        head(checked_head(request.integer_in_path("head"), trace.specification())) {}
};

Pooling pooling_of(const Request& request, const char* fallback = "mean") {
  const std::vector<std::string> words{fallback, "mean", "max"};
  return one_of(request, "pooling", words) == "max" ? Pooling::max : Pooling::mean;
}

AttentionValues values_of(const Request& request) {
  return one_of(request, "values", {"pattern", "scores"}) == "scores" ? AttentionValues::scores
                                                                      : AttentionValues::pattern;
}

std::int64_t cells(std::int64_t begin, std::int64_t end, std::int64_t pool) {
  return (end - begin + pool - 1) / pool;
}

Reply thumbnails(State& state, const Request& request) {
  StoredTrace& trace = trace_of(state, request);
  const std::int64_t size = bounded(request, "size", 32, 1, 256);
  std::int64_t pool = 1;
  while (cells(0, trace.positions(), pool) > size) pool *= 2;
  const std::int64_t side = cells(0, trace.positions(), pool);
  const StackSpecification& config = trace.specification();
  Tensor<float> all(Shape{config.layers, config.heads(), side, side});
  const Pooling pooling = pooling_of(request, "max");
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    for (std::int64_t head = 0; head < config.heads(); ++head) {
      require(!stop_requested(request.stop), ErrorCode::interrupted, "the client disconnected");
      const Tensor<float> small =
          trace.attention->region(only_site, {.layer = layer,
                                              .head = head,
                                              .query_end = trace.positions(),
                                              .key_end = trace.positions(),
                                              .pool = pool,
                                              .pooling = pooling});
      std::ranges::copy(small.span(), all.view()[layer][head].data());
    }
  }
  return array_reply(request, all, "thumbnails");
}

bool asks_for_words(const Request& request) {
  return one_of(request, "unit", {"tokens", "words"}) == "words";
}

Reply region(State& state, const Request& request) {
  StoredTrace& trace = trace_of(state, request);
  const HeadPath path(request, trace);
  if (asks_for_words(request)) return words_region(request, trace, path.layer, path.head);
  AttentionRegion wanted{.layer = path.layer,
                         .head = path.head,
                         .query_begin = request.integer("query_begin", 0),
                         .query_end = request.integer("query_end", trace.positions()),
                         .key_begin = request.integer("key_begin", 0),
                         .key_end = request.integer("key_end", trace.positions()),
                         .pool = bounded(request, "pool", 1, 1, std::int64_t{1} << 30),
                         .values = values_of(request),
                         .pooling = pooling_of(request)};
  const std::int64_t most = trace.positions();
  if (wanted.query_begin >= 0 && wanted.key_begin >= 0) {
    require_sendable(
        cells(std::min(wanted.query_begin, most), std::min(wanted.query_end, most), wanted.pool) *
        cells(std::min(wanted.key_begin, most), std::min(wanted.key_end, most), wanted.pool));
  }
  return array_reply(request, trace.attention->region(only_site, wanted), "attention");
}

Reply tile(State& state, const Request& request) {
  StoredTrace& trace = trace_of(state, request);
  const HeadPath path(request, trace);
  return array_reply(request,
                     trace.attention->tile(only_site, {.layer = path.layer,
                                                       .head = path.head,
                                                       .level = request.integer_in_path("level"),
                                                       .row = request.integer_in_path("row"),
                                                       .column = request.integer_in_path("column"),
                                                       .values = values_of(request),
                                                       .pooling = pooling_of(request)}),
                     "tile");
}

// The `top` largest weights, or all of them as an array.
Reply weights_reply(const Request& request, const StoredTrace& trace, const Tensor<float>& weights,
                    const std::string& name) {
  if (!request.parameter("top")) {
    return array_reply(request,
                       {.shape = {trace.positions()}, .values = weights.span(), .name = name});
  }
  const std::int64_t top = bounded(request, "top", 10, 1, 1 << 20);
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < weights.size(); ++i) order.push_back(i);
  std::ranges::stable_sort(order,
                           [&](std::int64_t a, std::int64_t b) { return weights[a] > weights[b]; });
  order.resize(static_cast<std::size_t>(std::min(top, weights.size())));
  OrderedJson positions = OrderedJson::array();
  for (const std::int64_t position : order) {
    const auto token = static_cast<std::size_t>(position);
    positions.push_back({{"position", position},
                         {"weight", json_number(weights[position])},
                         {"token", token_json(trace.model(), trace.pass->tokens()[token])}});
  }
  return json_reply({{"positions", std::move(positions)}});
}

Reply row(State& state, const Request& request) {
  StoredTrace& trace = trace_of(state, request);
  const HeadPath path(request, trace);
  const std::int64_t query = checked_position(request.integer_in_path("query"), trace);
  if (asks_for_words(request)) return words_row(request, trace, path.layer, path.head, query);
  return weights_reply(request, trace,
                       trace.attention->region(only_site, {.layer = path.layer,
                                                           .head = path.head,
                                                           .query_begin = query,
                                                           .query_end = query + 1,
                                                           .key_end = trace.positions(),
                                                           .values = values_of(request)}),
                       "row");
}

Reply column(State& state, const Request& request) {
  StoredTrace& trace = trace_of(state, request);
  const HeadPath path(request, trace);
  const std::int64_t key = checked_position(request.integer_in_path("key"), trace);
  if (asks_for_words(request)) return words_column(request, trace, path.layer, path.head, key);
  return weights_reply(request, trace,
                       trace.attention->region(only_site, {.layer = path.layer,
                                                           .head = path.head,
                                                           .query_end = trace.positions(),
                                                           .key_begin = key,
                                                           .key_end = key + 1,
                                                           .values = values_of(request)}),
                       "column");
}

// The row of a head's pattern if an intervention changed it; otherwise empty.
Tensor<float> edited_shares(StoredTrace& trace, std::int64_t layer, std::int64_t head,
                            std::int64_t position) {
  if (!trace.pass->edits_pattern(only_site, layer, head)) return {};
  return trace.attention->region(only_site, {.layer = layer,
                                             .head = head,
                                             .query_begin = position,
                                             .query_end = position + 1,
                                             .key_end = trace.positions()});
}

Reply walk(State& state, const Request& request) {
  StoredTrace& trace = trace_of(state, request);
  const std::int64_t layer = checked_layer(request.integer("layer", 0), trace.specification());
  const std::int64_t head = checked_head(request.integer("head", 0), trace.specification());
  const std::int64_t position = position_of(request, trace);
  Capture capture(word_walk_points(trace.specification(), layer));
  trace.pass->replay_layer(layer, capture);
  const Tensor<float> shares = edited_shares(trace, layer, head, position);
  const WordWalk walked =
      walk_word(trace.model().gpt, capture, layer, head, position, shares.span());

  const std::vector<std::string> bytes = trace.model().token_bytes(trace.pass->tokens());
  const std::vector<TextWord> words = words_of(bytes);
  const auto word = std::ranges::find(words, position, &TextWord::last);
  return json_reply(word_walk_json(bytes, word == words.end() ? nullptr : &*word, walked));
}

}  // namespace

void add_attention_routes(StateRoutes& routes) {
  const std::string head = "/api/traces/{id}/attention/{layer}/{head}";
  routes.add("GET", "/api/traces/{id}/thumbnails", thumbnails);
  routes.add("GET", head, region);
  routes.add("GET", head + "/tiles/{level}/{row}/{column}", tile);
  routes.add("GET", head + "/rows/{query}", row);
  routes.add("GET", head + "/columns/{key}", column);
  routes.add("GET", "/api/traces/{id}/walk", walk);
}

}  // namespace heed::server
