#include "server/explorer/word_attention.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "engine/views/token_json.h"
#include "server/explorer/array_reply.h"

namespace heed::server {
namespace {

void require_sums(const Request& request) {
  require(one_of(request, "values", {"pattern", "scores"}) == "pattern" &&
              request.integer("pool", 1) == 1,
          ErrorCode::invalid_argument,
          "words sum the weights of their tokens: unit=words takes values=pattern and pool=1");
}

std::vector<float> row_by_words(StoredTrace& trace, std::int64_t layer, std::int64_t head,
                                std::int64_t query) {
  const Tensor<float> row = trace.attention->region(only_site, {.layer = layer,
                                                                .head = head,
                                                                .query_begin = query,
                                                                .query_end = query + 1,
                                                                .key_end = trace.positions()});
  return by_unit(trace.units, row.span());
}

struct Range {
  std::int64_t begin;
  std::int64_t end;
};

// ?NAME_begin= and ?NAME_end=, in words.
Range word_range(const Request& request, const std::string& name, std::int64_t words) {
  const std::int64_t begin = bounded(request, name + "_begin", 0, 0, words - 1);
  return {begin, bounded(request, name + "_end", words, begin + 1, words)};
}

Reply weights_reply(const Request& request, const StoredTrace& trace,
                    const std::vector<float>& weights, const std::string& name) {
  if (!request.parameter("top")) {
    return array_reply(request, {.shape = {std::ssize(weights)}, .values = weights, .name = name});
  }
  const auto top = static_cast<std::size_t>(bounded(request, "top", 10, 1, 1 << 20));
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t word) { return weights[word]; });
  order.resize(std::min(top, order.size()));
  const OrderedJson units = units_json(trace.units);
  OrderedJson positions = OrderedJson::array();
  for (const std::size_t word : order) {
    OrderedJson entry{{"word", word}};
    entry.update(units[word]);
    entry["weight"] = json_number(weights[word]);
    positions.push_back(std::move(entry));
  }
  return json_reply({{"positions", std::move(positions)}});
}

}  // namespace

Reply words_region(const Request& request, StoredTrace& trace, std::int64_t layer,
                   std::int64_t head) {
  require_sums(request);
  const std::int64_t words = std::ssize(trace.units);
  const Range queries = word_range(request, "query", words);
  const Range keys = word_range(request, "key", words);
  const std::int64_t width = keys.end - keys.begin;
  require_sendable((queries.end - queries.begin) * width);
  Tensor<float> region(Shape{queries.end - queries.begin, width});
  for (std::int64_t word = queries.begin; word < queries.end; ++word) {
    require(!stop_requested(request.stop), ErrorCode::interrupted, "the client disconnected");
    const std::vector<float> row =
        row_by_words(trace, layer, head, trace.units[static_cast<std::size_t>(word)].last());
    std::copy_n(row.begin() + keys.begin, width, region.view()[word - queries.begin].data());
  }
  return array_reply(request, region, "attention-by-words");
}

Reply words_row(const Request& request, StoredTrace& trace, std::int64_t layer, std::int64_t head,
                std::int64_t query) {
  require_sums(request);
  return weights_reply(request, trace, row_by_words(trace, layer, head, query), "row-by-words");
}

Reply words_column(const Request& request, StoredTrace& trace, std::int64_t layer,
                   std::int64_t head, std::int64_t key) {
  require_sums(request);
  const TextWord& attended = unit_at(trace.units, key);
  require_sendable(trace.positions() * (attended.end - attended.begin));
  const Tensor<float> columns = trace.attention->region(only_site, {.layer = layer,
                                                                    .head = head,
                                                                    .query_end = trace.positions(),
                                                                    .key_begin = attended.begin,
                                                                    .key_end = attended.end});
  std::vector<float> weights;
  for (const TextWord& unit : trace.units) {
    const auto row = columns.view()[unit.last()].span();
    weights.push_back(static_cast<float>(std::accumulate(row.begin(), row.end(), 0.0)));
  }
  return weights_reply(request, trace, weights, "column-by-words");
}

}  // namespace heed::server
