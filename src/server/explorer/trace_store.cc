#include "server/explorer/trace_store.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "engine/token_json.h"
#include "server/exchange.h"
#include "server/explorer/model_json.h"

namespace heed::server {
namespace {

std::string size_text(std::int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

std::int64_t TraceStore::bytes_needed(const StackSpecification& config, std::int64_t positions) {
  return KeptPass::bytes_needed(config, positions) +
         LazyAttention::bytes_needed(config, config.layers, positions);
}

void TraceStore::require_room(const StackSpecification& config, std::int64_t positions) const {
  const std::int64_t needed = bytes_needed(config, positions);
  if (needed > budget_) {
    throw HttpError(413, fmt::format("a trace of {} tokens needs {}, more than the {} that traces "
                                     "may take; shorten the text, or start with more: "
                                     "--trace-budget",
                                     positions, size_text(needed), size_text(budget_)));
  }
}

const StoredTrace& TraceStore::add(NewTrace wanted) {
  const Gpt& gpt = wanted.source.model->gpt;
  const auto positions = static_cast<std::int64_t>(wanted.tokens.size());
  require_room(gpt.config(), positions);
  const std::int64_t needed = bytes_needed(gpt.config(), positions);
  while (bytes() + needed > budget_) drop(std::prev(traces_.end()));
  KeptPass::Buffers reused = std::move(spare_);
  spare_ = {};
  spare_bytes_ = 0;

  StoredTrace trace{.id = fmt::format("t{}", ++made_),
                    .source = std::move(wanted.source),
                    .interventions = std::move(wanted.interventions),
                    .base = std::move(wanted.base),
                    .bytes = needed};
  const auto begin = std::chrono::steady_clock::now();
  trace.pass = std::make_unique<KeptPass>(gpt, std::move(wanted.tokens), std::move(wanted.editor),
                                          std::move(reused));
  trace.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  trace.attention = std::make_unique<KeptAttention>(*trace.pass);
  trace.units = text_units(trace.model(), trace.pass->tokens());
  traces_.push_front(std::move(trace));
  return traces_.front();
}

StoredTrace& TraceStore::use(const std::string& id) {
  const auto found = std::ranges::find(traces_, id, &StoredTrace::id);
  require(found != traces_.end(), ErrorCode::not_found,
          "there is no trace \"{}\": it was evicted, or never created", id.substr(0, 40));
  traces_.splice(traces_.begin(), traces_, found);
  return traces_.front();
}

void TraceStore::remove(const std::string& id) {
  use(id);
  drop(traces_.begin());
}

void TraceStore::drop(std::list<StoredTrace>::iterator trace) {
  const std::int64_t bytes_freed = trace->bytes;
  KeptPass::Buffers buffers = trace->pass->take_buffers();
  traces_.erase(trace);
  spare_ = {};
  spare_bytes_ = 0;
  if (bytes() + bytes_freed <= budget_) {
    spare_ = std::move(buffers);
    spare_bytes_ = bytes_freed;
  }
}

std::int64_t TraceStore::bytes() const {
  std::int64_t sum = 0;
  for (const StoredTrace& trace : traces_) sum += trace.bytes;
  return sum;
}

OrderedJson trace_json(StoredTrace& trace) {
  OrderedJson source{{"name", trace.model().name}, {"run", nullptr}, {"step", nullptr}};
  if (!trace.source.run.empty()) {
    source["run"] = trace.source.run;
    source["step"] = trace.source.step;
  }
  return {{"id", trace.id},
          {"tokens", tokens_json(trace.model(), trace.pass->tokens())},
          {"words", units_json(trace.units)},
          {"bytes", trace.bytes},
          {"seconds", json_number(trace.seconds)},
          {"interventions", OrderedJson(trace.interventions)},
          {"base", trace.base.empty() ? OrderedJson(nullptr) : OrderedJson(trace.base)},
          {"model", std::move(source)},
          {"layers", trace.config().layers},
          {"heads", trace.config().heads()},
          {"levels", trace.attention->levels()},
          {"dimensions", dimensions_json(trace.config())}};
}

}  // namespace heed::server
