#include "server/explorer/trace_store.h"

#include <chrono>
#include <utility>

#include "base/error.h"
#include "engine/views/token_json.h"
#include "model/input_checks.h"
#include "server/exchange.h"
#include "server/explorer/model_json.h"

namespace heed::server {
std::int64_t TraceStore::bytes_needed(const StackSpecification& config, std::int64_t positions) {
  const Architecture architecture{.stacks = {config}};
  return RecordedPass::bytes_needed(architecture, positions) +
         RecordedAttention::bytes_needed(architecture, positions);
}

void TraceStore::require_room(const StackSpecification& config, std::int64_t positions) const {
  const std::int64_t needed = bytes_needed(config, positions);
  if (needed > budget()) {
    throw HttpError(413, fmt::format("a trace of {} tokens needs {}, more than the {} that traces "
                                     "may take; shorten the text, or start with more: "
                                     "--trace-budget",
                                     positions, size_text(needed), size_text(budget())));
  }
}

const StoredTrace& TraceStore::add(NewTrace wanted, StopFlag stop) {
  const Transformer& gpt = wanted.source.model->gpt;
  const auto positions = static_cast<std::int64_t>(wanted.tokens.size());
  require_sums_to_logits(gpt.specification(), "a trace of a text");
  require_room(gpt.specification(), positions);
  const std::int64_t needed = bytes_needed(gpt.specification(), positions);
  if (spare_.memory.bytes() == 0 && !budget_.has_room(needed) && !traces_.empty() &&
      traces_.oldest().pass_memory.bytes() == needed) {
    drop(traces_.take_oldest());
  }
  Spare reused;
  if (spare_.memory.bytes() == needed) {
    reused = std::exchange(spare_, {});
  } else {
    take(reused.memory, needed, 0);
  }

  StoredTrace trace{.id = fmt::format("t{}", ++made_),
                    .source = std::move(wanted.source),
                    .interventions = std::move(wanted.interventions),
                    .base = std::move(wanted.base),
                    .pass_memory = std::move(reused.memory),
                    .held = std::move(wanted.held)};
  const auto begin = std::chrono::steady_clock::now();
  trace.pass = std::make_unique<RecordedPass>(
      gpt, Texts{.source = {}, .target = std::move(wanted.tokens)}, std::move(wanted.editor),
      RecordOptions{.stop = stop, .reused = std::move(reused.buffers)});
  trace.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  trace.attention = std::make_unique<RecordedAttention>(*trace.pass);
  trace.units = text_units(trace.model(), trace.pass->tokens());
  return traces_.add(std::move(trace));
}

void TraceStore::take(MemoryBudget::Share& share, std::int64_t bytes, std::size_t kept) {
  budget_.take(share, bytes, [&] { return evict(kept); });
  forget_maps_beyond_budget();
}

// Gives back what is needed least; false where there is nothing left.
bool TraceStore::evict(std::size_t kept) {
  if (spare_.memory.bytes() > 0) {
    spare_ = {};
    return true;
  }
  if (traces_.size() <= kept) return false;
  drop(traces_.take_oldest());
  spare_ = {};
  return true;
}

StoredTrace& TraceStore::use(const std::string& id) {
  StoredTrace& trace = traces_.use(id);
  forget_maps_beyond_budget();
  return trace;
}

// Maps are drawn after their trace is stored, and can be drawn again.
void TraceStore::forget_maps_beyond_budget() {
  const auto& traces = traces_.all();
  for (auto trace = traces.rbegin(); trace != traces.rend() && bytes() > budget(); ++trace) {
    trace->attention->forget();
  }
}

void TraceStore::remove(const std::string& id) {
  use(id);
  drop(traces_.take_newest());
}

void TraceStore::drop(StoredTrace trace) {
  spare_ = {};
  spare_ = {.buffers = trace.pass->take_buffers(), .memory = std::move(trace.pass_memory)};
}

std::int64_t TraceStore::bytes() const {
  std::int64_t maps = 0;
  for (const StoredTrace& trace : traces_.all()) maps += trace.attention->cached_bytes();
  return budget_.held() - spare_.memory.bytes() + maps;
}

RecordedText recorded_text(TraceStore& store, const std::string& id) {
  const StoredTrace& trace = store.use(id);
  return {{.target = trace.positions()}, [&trace](Probe& probe) { trace.pass->replay(probe); }};
}

std::string trace_text(const StoredTrace& trace) {
  OrderedJson source{{"name", trace.model().name}, {"run", nullptr}, {"step", nullptr}};
  if (!trace.source.run.empty()) {
    source["run"] = trace.source.run;
    source["step"] = trace.source.step;
  }
  const OrderedJson document{
      {"id", trace.id},
      {"tokens", tokens_json(trace.model(), trace.pass->tokens())},
      {"words", units_json(trace.units)},
      {"bytes", trace.bytes()},
      {"seconds", json_number(trace.seconds)},
      {"interventions", nullptr},
      {"base", trace.base.empty() ? OrderedJson(nullptr) : OrderedJson(trace.base)},
      {"model", std::move(source)},
      {"layers", trace.specification().layers},
      {"heads", trace.specification().heads()},
      {"levels", trace.attention->levels(only_site)},
      {"dimensions", dimensions_json(trace.specification())}};
  return with_member(document, "interventions", trace.interventions.text);
}

}  // namespace heed::server
