// Attention of a trace at each of its sites: thumbnails and statistics of all heads, regions,
// tiles, rows and columns of a head, by tokens or by words.
#include <algorithm>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "engine/views/report_json.h"
#include "engine/views/token_json.h"
#include "microscope/attention/head_scan.h"
#include "microscope/attention/word_walk.h"
#include "server/explorer/array_reply.h"
#include "server/explorer/state.h"

namespace heed::server {
namespace {

// Of the sites where a request may leave out which one, the one that it means.
AttentionSite usual_site(const StoredTrace& trace) {
  return trace.has_two_texts() ? cross_site : only_site;
}

AttentionSite site_in_query(const Request& request, const StoredTrace& trace) {
  const auto name = request.parameter("site");
  return name ? trace.site(*name) : usual_site(trace);
}

struct HeadPath {
  AttentionSite site;
  std::int64_t layer;
  std::int64_t head;

  HeadPath(const Request& request, const StoredTrace& trace)
      : site(trace.site(request.in_path("site"))),
        layer(checked_layer(request.integer_in_path("layer"), trace.architecture().of(site.stack))),
        head(request.integer_in_path("head")) {
    const std::int64_t heads = attention_of(trace.architecture(), site).query_heads;
    require(head >= 0 && head < heads, ErrorCode::invalid_argument,
            "head {} does not exist: a layer has heads 0 to {}", head, heads - 1);
  }
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

Reply thumbnails(TraceState& state, const Request& request) {
  const StoredTrace& trace = trace_of(state, request);
  const AttentionSite site = site_in_query(request, trace);
  const std::int64_t size = bounded(request, "size", 32, 1, 256);
  const std::int64_t queries = trace.queries(site), keys = trace.keys(site);
  std::int64_t pool = 1;
  while (cells(0, std::max(queries, keys), pool) > size) pool *= 2;
  const std::int64_t layers = trace.architecture().of(site.stack).layers;
  const std::int64_t heads = attention_of(trace.architecture(), site).query_heads;
  const std::int64_t rows = cells(0, queries, pool), columns = cells(0, keys, pool);
  require_sendable(layers * heads * rows * columns);
  Tensor<float> all(Shape{layers, heads, rows, columns});
  const Pooling pooling = pooling_of(request, "max");
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    for (std::int64_t head = 0; head < heads; ++head) {
      require(!stop_requested(request.stop), ErrorCode::interrupted, "the client disconnected");
      const Tensor<float> small = trace.attention->region(site, {.layer = layer,
                                                                 .head = head,
                                                                 .query_end = queries,
                                                                 .key_end = keys,
                                                                 .pool = pool,
                                                                 .pooling = pooling});
      std::ranges::copy(small.span(), all.view()[layer][head].data());
    }
  }
  return array_reply(request, all, "thumbnails");
}

Reply head_table(TraceState& state, const Request& request) {
  const StoredTrace& trace = trace_of(state, request);
  std::vector<AttentionSite> sites;  // empty: all
  if (const auto name = request.parameter("site")) sites.push_back(trace.site(*name));
  OrderedJson heads = OrderedJson::array();
  for (const RankedHead& head : scan_heads(*trace.pass, std::move(sites), request.stop).all()) {
    heads.push_back(head_statistics_json(head));
  }
  return json_reply({{"heads", std::move(heads)}});
}

bool asks_for_words(const Request& request) {
  return one_of(request, "unit", {"tokens", "words"}) == "words";
}

// ?row=: which positions stand for a word. Weights of a word's tokens have a sum, scores have none.
WordRow word_row_of(const Request& request, AttentionSite site, const StoredTrace& trace) {
  require(values_of(request) == AttentionValues::pattern && request.integer("pool", 1) == 1,
          ErrorCode::invalid_argument,
          "words sum the weights of their tokens: unit=words takes values=pattern and pool=1");
  const bool is_written = one_of(request, "row", {"read", "written"}) == "written";
  const bool is_encoder = trace.architecture().of(site.stack).role == StackRole::encoder;
  require(!is_written || !is_encoder, ErrorCode::invalid_argument,
          "an encoder writes no words: row=written is of a decoder, and of cross");
  return is_written ? WordRow::written : WordRow::read;
}

// The weights of the queries [begin, end), averaged, by the words of the keys.
std::vector<float> weights_by_words(const StoredTrace& trace, const HeadPath& path,
                                    std::int64_t begin, std::int64_t end) {
  const Tensor<float> rows = trace.attention->region(path.site, {.layer = path.layer,
                                                                 .head = path.head,
                                                                 .query_begin = begin,
                                                                 .query_end = end,
                                                                 .key_end = trace.keys(path.site)});
  std::vector<float> mean(static_cast<std::size_t>(trace.keys(path.site)));
  for (std::int64_t row = 0; row < end - begin; ++row) {
    const std::span<const float> weights = rows.view()[row].span();
    for (std::size_t key = 0; key < mean.size(); ++key) {
      mean[key] += weights[key] / static_cast<float>(end - begin);
    }
  }
  return by_unit(trace.units_of(trace.key_side(path.site)), mean);
}

std::vector<float> word_row(const StoredTrace& trace, const HeadPath& path, const TextWord& word,
                            WordRow row) {
  if (row == WordRow::written && word.begin > 0) {
    return weights_by_words(trace, path, word.begin - 1, word.end - 1);
  }
  return weights_by_words(trace, path, word.last(), word.end);
}

struct WordRange {
  std::int64_t begin;
  std::int64_t end;
};

// ?NAME_begin= and ?NAME_end=, in words.
WordRange word_range(const Request& request, const std::string& name, std::int64_t words) {
  const std::int64_t begin = bounded(request, name + "_begin", 0, 0, words - 1);
  return {begin, bounded(request, name + "_end", words, begin + 1, words)};
}

Reply region_of_words(const Request& request, const StoredTrace& trace, const HeadPath& path) {
  const WordRow row = word_row_of(request, path.site, trace);
  const std::vector<TextWord>& words = trace.units_of(trace.query_side(path.site));
  const std::vector<TextWord>& key_words = trace.units_of(trace.key_side(path.site));
  const WordRange queries = word_range(request, "query", std::ssize(words));
  const WordRange keys = word_range(request, "key", std::ssize(key_words));
  const std::int64_t width = keys.end - keys.begin;
  require_sendable((queries.end - queries.begin) * width);
  Tensor<float> region(Shape{queries.end - queries.begin, width});
  for (std::int64_t word = queries.begin; word < queries.end; ++word) {
    require(!stop_requested(request.stop), ErrorCode::interrupted, "the client disconnected");
    const std::vector<float> weights =
        word_row(trace, path, words[static_cast<std::size_t>(word)], row);
    std::copy_n(weights.begin() + keys.begin, width, region.view()[word - queries.begin].data());
  }
  return array_reply(request, region, "attention-by-words");
}

Reply region(TraceState& state, const Request& request) {
  const StoredTrace& trace = trace_of(state, request);
  const HeadPath path(request, trace);
  if (asks_for_words(request)) return region_of_words(request, trace, path);
  const std::int64_t queries = trace.queries(path.site), keys = trace.keys(path.site);
  const AttentionRegion wanted{.layer = path.layer,
                               .head = path.head,
                               .query_begin = request.integer("query_begin", 0),
                               .query_end = request.integer("query_end", queries),
                               .key_begin = request.integer("key_begin", 0),
                               .key_end = request.integer("key_end", keys),
                               .pool = bounded(request, "pool", 1, 1, std::int64_t{1} << 30),
                               .values = values_of(request),
                               .pooling = pooling_of(request)};
  if (wanted.query_begin >= 0 && wanted.key_begin >= 0) {
    require_sendable(
        cells(std::min(wanted.query_begin, queries), std::min(wanted.query_end, queries),
              wanted.pool) *
        cells(std::min(wanted.key_begin, keys), std::min(wanted.key_end, keys), wanted.pool));
  }
  return array_reply(request, trace.attention->region(path.site, wanted), "attention");
}

Reply tile(TraceState& state, const Request& request) {
  const StoredTrace& trace = trace_of(state, request);
  const HeadPath path(request, trace);
  return array_reply(request,
                     trace.attention->tile(path.site, {.layer = path.layer,
                                                       .head = path.head,
                                                       .level = request.integer_in_path("level"),
                                                       .row = request.integer_in_path("row"),
                                                       .column = request.integer_in_path("column"),
                                                       .values = values_of(request),
                                                       .pooling = pooling_of(request)}),
                     "tile");
}

// What the numbers of a row or column belong to: tokens or words of a side.
struct WeightedPlaces {
  PairSide side = PairSide::target;
  std::string name{};
};

// The `top` largest weights, or all of them as an array.
template <class Entry>
Reply weights_reply(const Request& request, std::span<const float> weights, const std::string& name,
                    const Entry& entry) {
  if (!request.parameter("top")) {
    return array_reply(request, {.shape = {std::ssize(weights)}, .values = weights, .name = name});
  }
  const auto top = static_cast<std::size_t>(bounded(request, "top", 10, 1, 1 << 20));
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return weights[i]; });
  order.resize(std::min(top, order.size()));
  OrderedJson positions = OrderedJson::array();
  for (const std::size_t i : order) positions.push_back(entry(i));
  return json_reply({{"positions", std::move(positions)}});
}

Reply token_weights(const Request& request, const StoredTrace& trace, const Tensor<float>& weights,
                    const WeightedPlaces& places) {
  return weights_reply(request, weights.span(), places.name, [&](std::size_t position) {
    const std::int32_t token = trace.tokens(places.side)[position];
    return OrderedJson{{"position", position},
                       {"weight", json_number(weights[static_cast<std::int64_t>(position)])},
                       {"token", token_json(trace.model(), token, places.side)}};
  });
}

Reply word_weights(const Request& request, const StoredTrace& trace,
                   const std::vector<float>& weights, const WeightedPlaces& places) {
  const OrderedJson units = units_json(trace.units_of(places.side));
  return weights_reply(request, weights, places.name, [&](std::size_t word) {
    OrderedJson entry{{"word", word}};
    entry.update(units[word]);
    entry["weight"] = json_number(weights[word]);
    return entry;
  });
}

// A position of a side in the path.
std::int64_t position_in_path(const Request& request, const std::string& name,
                              const StoredTrace& trace, PairSide side) {
  const std::int64_t position = request.integer_in_path(name);
  const std::int64_t count = std::ssize(trace.tokens(side));
  require(position < count, ErrorCode::invalid_argument,
          "position {} does not exist: the {} has positions 0 to {}", position, trace.name_of(side),
          count - 1);
  return position;
}

Reply row(TraceState& state, const Request& request) {
  const StoredTrace& trace = trace_of(state, request);
  const HeadPath path(request, trace);
  const std::int64_t query = position_in_path(request, "query", trace, trace.query_side(path.site));
  const PairSide side = trace.key_side(path.site);
  if (asks_for_words(request)) {
    const WordRow wanted = word_row_of(request, path.site, trace);
    const std::vector<TextWord>& words = trace.units_of(trace.query_side(path.site));
    return word_weights(request, trace,
                        wanted == WordRow::written
                            ? word_row(trace, path, unit_at(words, query), wanted)
                            : weights_by_words(trace, path, query, query + 1),
                        {side, "row-by-words"});
  }
  return token_weights(request, trace,
                       trace.attention->region(path.site, {.layer = path.layer,
                                                           .head = path.head,
                                                           .query_begin = query,
                                                           .query_end = query + 1,
                                                           .key_end = trace.keys(path.site),
                                                           .values = values_of(request)}),
                       {side, "row"});
}

// What each word gives to the whole word with the token at `key`.
std::vector<float> word_column(const Request& request, const StoredTrace& trace,
                               const HeadPath& path, std::int64_t key) {
  const WordRow row = word_row_of(request, path.site, trace);
  const TextWord& attended = unit_at(trace.units_of(trace.key_side(path.site)), key);
  require_sendable(trace.queries(path.site) * (attended.end - attended.begin));
  const Tensor<float> columns =
      trace.attention->region(path.site, {.layer = path.layer,
                                          .head = path.head,
                                          .query_end = trace.queries(path.site),
                                          .key_begin = attended.begin,
                                          .key_end = attended.end});
  const TextWord whole{.text = {}, .begin = 0, .end = attended.end - attended.begin};
  const Tensor<float> by_word =
      by_words(columns, trace.units_of(trace.query_side(path.site)), std::span(&whole, 1), row);
  return {by_word.span().begin(), by_word.span().end()};
}

Reply column(TraceState& state, const Request& request) {
  const StoredTrace& trace = trace_of(state, request);
  const HeadPath path(request, trace);
  const std::int64_t key = position_in_path(request, "key", trace, trace.key_side(path.site));
  const PairSide side = trace.query_side(path.site);
  if (asks_for_words(request)) {
    return word_weights(request, trace, word_column(request, trace, path, key),
                        {side, "column-by-words"});
  }
  return token_weights(request, trace,
                       trace.attention->region(path.site, {.layer = path.layer,
                                                           .head = path.head,
                                                           .query_end = trace.queries(path.site),
                                                           .key_begin = key,
                                                           .key_end = key + 1,
                                                           .values = values_of(request)}),
                       {side, "column"});
}

Reply walk(TraceState& state, const Request& request) {
  const StoredTrace& trace = one_text_of(state, request, "the computation of a head for a word is");
  const std::int64_t layer = checked_layer(request.integer("layer", 0), trace.specification());
  const std::int64_t head = checked_head(request.integer("head", 0), trace.specification());
  const std::int64_t position = position_of(request, trace);
  const WordWalk walked = walk_word(*trace.pass, *trace.attention, layer, head, position);
  const std::vector<std::string> bytes = trace.model().token_bytes(trace.pass->tokens());
  const std::vector<TextWord> words = words_of(bytes);
  const auto word = std::ranges::find(words, position, &TextWord::last);
  return json_reply(word_walk_json(bytes, word == words.end() ? nullptr : &*word, walked));
}

}  // namespace

void add_attention_routes(TraceRoutes& routes) {
  const std::string head = "/api/traces/{id}/attention/{site}/{layer}/{head}";
  routes.add("GET", "/api/traces/{id}/thumbnails", thumbnails);
  routes.add("GET", "/api/traces/{id}/heads", head_table);
  routes.add("GET", head, region);
  routes.add("GET", head + "/tiles/{level}/{row}/{column}", tile);
  routes.add("GET", head + "/rows/{query}", row);
  routes.add("GET", head + "/columns/{key}", column);
  routes.add("GET", "/api/traces/{id}/walk", walk);
}

}  // namespace heed::server
