// Attention of a pair of texts: thumbnails of all heads, regions, tiles, rows and columns of a
// head, statistics, and the alignment of words.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "engine/documents.h"
#include "engine/pair_json.h"
#include "microscope/attention/head_scan.h"
#include "model/input_checks.h"
#include "server/explorer/array_reply.h"
#include "server/explorer/pair_routes.h"
#include "server/explorer/state.h"
#include "server/fields.h"

namespace heed::server {
namespace {

AttentionSite required_site(const std::string& name, const Architecture& architecture) {
  const auto kind = site_named(name, architecture);
  require(kind.has_value(), ErrorCode::invalid_argument,
          "there is no attention \"{}\": there are encoder, decoder and cross", name.substr(0, 40));
  return *kind;
}

struct PairHeadPath {
  AttentionSite kind;
  std::int64_t layer;
  std::int64_t head;

  PairHeadPath(const Request& request, const StoredPair& pair)
      : kind(required_site(request.in_path("kind"), pair.pass->architecture())),
        layer(checked_layer(request.integer_in_path("layer"),
                            pair.pass->architecture().of(kind.stack))),
        head(request.integer_in_path("head")) {
    const std::int64_t heads = attention_of(pair.pass->architecture(), kind).query_heads;
    require(head < heads, ErrorCode::invalid_argument,
            "head {} does not exist: a layer has heads 0 to {}", head, heads - 1);
  }
};

Pooling pair_pooling(const Request& request, const char* fallback = "mean") {
  return one_of(request, "pooling", {fallback, "mean", "max"}) == "max" ? Pooling::max
                                                                        : Pooling::mean;
}
AttentionValues pair_values(const Request& request) {
  return one_of(request, "values", {"pattern", "scores"}) == "scores" ? AttentionValues::scores
                                                                      : AttentionValues::pattern;
}
bool asks_for_pair_words(const Request& request) {
  return one_of(request, "unit", {"tokens", "words"}) == "words";
}
WordRow word_row(const Request& request) {
  return one_of(request, "row", {"read", "written"}) == "written" ? WordRow::written
                                                                  : WordRow::read;
}
std::int64_t pooled(std::int64_t positions, std::int64_t pool) {
  return (positions + pool - 1) / pool;
}

Reply pair_thumbnails(PairState& state, const Request& request) {
  StoredPair& pair = pair_of(state, request);
  const AttentionSite kind =
      required_site(request.parameter("kind").value_or("cross"), pair.pass->architecture());
  const std::int64_t size = bounded(request, "size", 32, 1, 256);
  const std::int64_t queries = pair.pass->queries(kind), keys = pair.pass->keys(kind);
  std::int64_t pool = 1;
  while (pooled(std::max(queries, keys), pool) > size) pool *= 2;
  const std::int64_t layers = pair.pass->architecture().of(kind.stack).layers;
  const std::int64_t heads = attention_of(pair.pass->architecture(), kind).query_heads;
  Tensor<float> all(Shape{layers, heads, pooled(queries, pool), pooled(keys, pool)});
  const Pooling pooling = pair_pooling(request, "max");
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    for (std::int64_t head = 0; head < heads; ++head) {
      require(!stop_requested(request.stop), ErrorCode::interrupted, "the client disconnected");
      const Tensor<float> small = pair.attention->region(kind, {.layer = layer,
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

Tensor<float> head_by_words(const Request& request, StoredPair& pair, const PairHeadPath& path) {
  require(pair_values(request) == AttentionValues::pattern && request.integer("pool", 1) == 1,
          ErrorCode::invalid_argument,
          "words sum the weights of their tokens: unit=words takes values=pattern and pool=1");
  const WordRow row = word_row(request);
  require(row == WordRow::read || path.kind != encoder_site, ErrorCode::invalid_argument,
          "an encoder writes no words: row=written is for decoder and cross");
  return by_words(pair.attention->pattern(path.kind, path.layer, path.head),
                  pair.query_words(path.kind), pair.key_words(path.kind), row);
}

Reply pair_region(PairState& state, const Request& request) {
  StoredPair& pair = pair_of(state, request);
  const PairHeadPath path(request, pair);
  if (asks_for_pair_words(request)) {
    return array_reply(request, head_by_words(request, pair, path), "attention-by-words");
  }
  return array_reply(
      request,
      pair.attention->region(
          path.kind, {.layer = path.layer,
                      .head = path.head,
                      .query_begin = request.integer("query_begin", 0),
                      .query_end = request.integer("query_end", pair.pass->queries(path.kind)),
                      .key_begin = request.integer("key_begin", 0),
                      .key_end = request.integer("key_end", pair.pass->keys(path.kind)),
                      .pool = bounded(request, "pool", 1, 1, std::int64_t{1} << 30),
                      .values = pair_values(request),
                      .pooling = pair_pooling(request)}),
      "attention");
}

Reply pair_tile(PairState& state, const Request& request) {
  StoredPair& pair = pair_of(state, request);
  const PairHeadPath path(request, pair);
  return array_reply(request,
                     pair.attention->tile(path.kind, {.layer = path.layer,
                                                      .head = path.head,
                                                      .level = request.integer_in_path("level"),
                                                      .row = request.integer_in_path("row"),
                                                      .column = request.integer_in_path("column"),
                                                      .values = pair_values(request),
                                                      .pooling = pair_pooling(request)}),
                     "tile");
}

// What the numbers of a row or column belong to.
struct WeightedPlaces {
  PairSide side = PairSide::source;
  std::span<const TextWord> words{};  // empty: tokens
  std::string name{};
};

// The ?top= largest weights, or all of them as an array.
Reply pair_weights(const Request& request, PairState& state, const StoredPair& pair,
                   std::span<const float> weights, const WeightedPlaces& places) {
  if (!request.parameter("top")) {
    return array_reply(request,
                       {.shape = {std::ssize(weights)}, .values = weights, .name = places.name});
  }
  const auto top = static_cast<std::size_t>(bounded(request, "top", 10, 1, 1 << 20));
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return weights[i]; });
  order.resize(std::min(top, order.size()));
  const Texts& tokens = pair.pass->texts();
  OrderedJson list = OrderedJson::array();
  for (const std::size_t i : order) {
    OrderedJson entry{{places.words.empty() ? "position" : "word", i},
                      {"weight", json_number(weights[i])}};
    if (places.words.empty()) {
      entry["token"] =
          pair_token_json(*state.model, places.side,
                          places.side == PairSide::source ? tokens.source[i] : tokens.target[i]);
    } else {
      entry["text"] = places.words[i].text;
    }
    list.push_back(std::move(entry));
  }
  return json_reply({{"positions", std::move(list)}});
}

std::int64_t checked_index(std::int64_t index, std::int64_t count, const std::string& what) {
  require(index < count, ErrorCode::invalid_argument, "{} {} does not exist: there are 0 to {}",
          what, index, count - 1);
  return index;
}

PairSide side_of_queries(AttentionSite kind) {
  return kind == encoder_site ? PairSide::source : PairSide::target;
}
PairSide side_of_keys(AttentionSite kind) {
  return kind == decoder_site ? PairSide::target : PairSide::source;
}

Reply pair_row(PairState& state, const Request& request) {
  StoredPair& pair = pair_of(state, request);
  const PairHeadPath path(request, pair);
  const std::int64_t query = request.integer_in_path("query");
  const PairSide side = side_of_keys(path.kind);
  if (asks_for_pair_words(request)) {
    checked_index(query, std::ssize(pair.query_words(path.kind)), "word");
    const Tensor<float> words = head_by_words(request, pair, path);
    return pair_weights(request, state, pair, words.view()[query].span(),
                        {side, pair.key_words(path.kind), "row-by-words"});
  }
  checked_index(query, pair.pass->queries(path.kind), "query");
  const Tensor<float> row =
      pair.attention->region(path.kind, {.layer = path.layer,
                                         .head = path.head,
                                         .query_begin = query,
                                         .query_end = query + 1,
                                         .key_end = pair.pass->keys(path.kind),
                                         .values = pair_values(request)});
  return pair_weights(request, state, pair, row.span(), {side, {}, "row"});
}

Reply pair_column(PairState& state, const Request& request) {
  StoredPair& pair = pair_of(state, request);
  const PairHeadPath path(request, pair);
  const std::int64_t key = request.integer_in_path("key");
  const PairSide side = side_of_queries(path.kind);
  if (asks_for_pair_words(request)) {
    checked_index(key, std::ssize(pair.key_words(path.kind)), "word");
    const Tensor<float> words = head_by_words(request, pair, path);
    std::vector<float> column;
    for (std::int64_t word = 0; word < words.shape()[0]; ++word) {
      column.push_back(words.view()(word, key));
    }
    return pair_weights(request, state, pair, column,
                        {side, pair.query_words(path.kind), "column-by-words"});
  }
  checked_index(key, pair.pass->keys(path.kind), "key");
  const Tensor<float> column =
      pair.attention->region(path.kind, {.layer = path.layer,
                                         .head = path.head,
                                         .query_end = pair.pass->queries(path.kind),
                                         .key_begin = key,
                                         .key_end = key + 1,
                                         .values = pair_values(request)});
  return pair_weights(request, state, pair, column.span(), {side, {}, "column"});
}

Reply pair_heads(PairState& state, const Request& request) {
  StoredPair& pair = pair_of(state, request);
  const std::optional<std::string> wanted = request.parameter("kind");
  const Architecture& architecture = pair.pass->architecture();
  std::optional<AttentionSite> only;
  if (wanted) only = required_site(*wanted, architecture);
  OrderedJson heads = OrderedJson::array();
  for (const AttentionSite kind : sites_of(architecture)) {
    if (only && *only != kind) continue;
    for (const RankedHead& head : scan_heads(*pair.pass, {kind}, request.stop).all()) {
      heads.push_back(head_statistics_json(head));
    }
  }
  return json_reply({{"heads", std::move(heads)}});
}

Reply pair_alignment(PairState& state, const Request& request) {
  StoredPair& pair = pair_of(state, request);
  const StackSpecification& decoder = pair.pass->architecture().decoder();
  CrossHead head{.layer = checked_layer(request.integer("layer", decoder.layers - 1), decoder),
                 .head = std::nullopt};
  if (request.parameter("head")) {
    head.head = bounded(request, "head", 0, 0, decoder.block.cross_attention->query_heads - 1);
  }
  const std::string row = one_of(request, "row", {"written", "read"});
  const Tensor<float> words = cross_by_words(*pair.pass, *pair.attention, head, pair.words(),
                                             row == "written" ? WordRow::written : WordRow::read);
  return json_reply({{"layer", head.layer},
                     {"head", head.head ? OrderedJson(*head.head) : OrderedJson(nullptr)},
                     {"row", row},
                     {"links", aligned_words_json(aligned_words(words))}});
}

Reply compare_alignment(PairState& state, const Request& request) {
  StoredPair& pair = pair_of(state, request);
  const Json body = request.json();
  const Fields fields(body);
  fields.expect_only({"links", "row"});
  const std::string row = fields.string("row").value_or("written");
  require(row == "written" || row == "read", ErrorCode::invalid_argument,
          "\"row\" must be written or read, not \"{}\"", row.substr(0, 40));
  scoring::TrueAlignment truth;
  for (const Json& link : fields.required_list("links")) {
    const bool is_pair = link.is_array() && link.size() == 2 && link[0].is_number_integer() &&
                         link[1].is_number_integer();
    require(is_pair, ErrorCode::invalid_argument,
            "\"links\" must be a list of [source word, target word], not {}",
            link.dump().substr(0, 40));
    const auto source = link[0].get<std::int64_t>(), target = link[1].get<std::int64_t>();
    require(source >= 0 && source < std::ssize(pair.source_words) && target >= 0 &&
                target < std::ssize(pair.target_words),
            ErrorCode::invalid_argument, "the link [{}, {}] lies outside texts of {} and {} words",
            source, target, pair.source_words.size(), pair.target_words.size());
    truth.sure.push_back({static_cast<std::int32_t>(source), static_cast<std::int32_t>(target)});
  }
  require(!truth.sure.empty(), ErrorCode::invalid_argument, "\"links\" is empty");
  return json_reply(
      {{"heads", head_alignments_json(head_alignments(
                     *pair.pass, *pair.attention, pair.words(), truth,
                     row == "written" ? WordRow::written : WordRow::read, request.stop))}});
}

}  // namespace

void add_pair_attention_routes(PairRoutes& routes) {
  const std::string head = "/api/pairs/{id}/attention/{kind}/{layer}/{head}";
  routes.add("GET", "/api/pairs/{id}/thumbnails", pair_thumbnails);
  routes.add("GET", head, pair_region);
  routes.add("GET", head + "/tiles/{level}/{row}/{column}", pair_tile);
  routes.add("GET", head + "/rows/{query}", pair_row);
  routes.add("GET", head + "/columns/{key}", pair_column);
  routes.add("GET", "/api/pairs/{id}/heads", pair_heads);
  routes.add("GET", "/api/pairs/{id}/alignment", pair_alignment);
  routes.add("POST", "/api/pairs/{id}/alignment", compare_alignment);
}

}  // namespace heed::server
