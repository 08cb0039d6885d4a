#include "server/explorer/trace_store.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/error.h"
#include "engine/views/reading_json.h"
#include "engine/views/token_json.h"
#include "microscope/traces/activation_trace.h"
#include "model/input_checks.h"
#include "server/exchange.h"
#include "server/explorer/model_json.h"

namespace heed::server {

std::span<const std::int32_t> StoredTrace::tokens(PairSide side) const {
  return side == PairSide::target ? pass->texts().target : pass->texts().source;
}

const char* StoredTrace::name_of(PairSide side) const {
  if (!has_two_texts()) return "text";
  return side == PairSide::source ? "source" : "target";
}

AttentionSite StoredTrace::site(const std::string& name) const {
  if (const auto found = site_named(name, architecture())) return *found;
  std::string known;
  for (const AttentionSite each : sites_of(architecture())) {
    known += (known.empty() ? "" : ", ") + std::string(site_name(each));
  }
  fail(ErrorCode::invalid_argument, "there is no attention \"{}\" in trace {}: there is {}",
       name.substr(0, 40), id, known);
}

PairSide StoredTrace::query_side(AttentionSite site) const {
  return site.stack == StackSite::encoder ? PairSide::source : PairSide::target;
}

PairSide StoredTrace::key_side(AttentionSite site) const {
  return site.kind == AttentionKind::cross ? PairSide::source : query_side(site);
}

Trace StoredTrace::arrays(const TraceRequest& request, const GradientTarget& target) const {
  ActivationTrace taken(architecture(), request,
                        {.positions = pass->positions(), .sources = pass->sources()});
  if (asks_for_gradients(request)) {
    pass->backward(target, taken);
  } else {
    pass->replay(taken);
  }
  return taken.take();
}

std::int64_t TraceStore::bytes_needed(const Architecture& architecture, std::int64_t targets,
                                      std::int64_t sources) {
  return RecordedPass::bytes_needed(architecture, targets, sources) +
         RecordedAttention::bytes_needed(architecture, targets, sources);
}

void TraceStore::require_room(const Architecture& architecture, std::int64_t targets,
                              std::int64_t sources) const {
  const std::int64_t needed = bytes_needed(architecture, targets, sources);
  if (needed <= budget()) return;
  const std::string length = architecture.is_encoder_decoder()
                                 ? fmt::format("{} and {} tokens", sources, targets)
                                 : fmt::format("{} tokens", targets);
  throw HttpError(413, fmt::format("a trace of {} needs {}, more than the {} that traces may take; "
                                   "shorten the text, or start with more: --trace-budget",
                                   length, size_text(needed), size_text(budget())));
}

void TraceStore::run(StoredTrace& trace, NewTrace& wanted, RecordedBuffers buffers,
                     StopFlag stop) const {
  const auto begin = std::chrono::steady_clock::now();
  trace.pass = std::make_unique<RecordedPass>(
      trace.model().transformer, std::move(wanted.texts), std::move(wanted.editor),
      RecordOptions{.stop = stop, .reused = std::move(buffers)});
  trace.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  trace.attention = std::make_unique<RecordedAttention>(*trace.pass);
}

namespace {

// The page shows a norm before each branch, and logits that are sums.
void require_shown(const StackSpecification& stack) {
  require_sums_to_logits(stack, "a trace of a text");
  require(!stack.shares_norm(), ErrorCode::unsupported,
          "a trace of a text needs a model with a norm for each branch; in this one attention and "
          "feed-forward read the same");
}

}  // namespace

const StoredTrace& TraceStore::add(NewTrace wanted, StopFlag stop) {
  const Architecture& architecture = wanted.source.model->architecture();
  const std::int64_t sources = std::ssize(wanted.texts.source);
  const std::int64_t targets = std::ssize(wanted.texts.target);
  require_texts_fit(architecture, wanted.texts);
  if (!wanted.source.model->is_translator()) {
    require_shown(architecture.decoder());
  }
  require_room(architecture, targets, sources);
  const std::int64_t needed = bytes_needed(architecture, targets, sources);
  if (spare_.memory.bytes() == 0 && !budget_.has_room(needed) && !traces_.empty() &&
      traces_.back().pass_memory.bytes() == needed) {
    drop(take_oldest());
  }
  Spare reused;
  if (spare_.memory.bytes() == needed) {
    reused = std::exchange(spare_, {});
  } else {
    take(reused.memory, needed, 0);
  }

  StoredTrace trace{.id = fmt::format("t{}", ++made_),
                    .source = std::move(wanted.source),
                    .is_translation = wanted.is_translation,
                    .interventions = std::move(wanted.interventions),
                    .base = std::move(wanted.base),
                    .pass_memory = std::move(reused.memory),
                    .held = std::move(wanted.held)};
  run(trace, wanted, std::move(reused.buffers), stop);
  trace.units = text_units(trace.model(), trace.tokens(PairSide::target));
  if (trace.has_two_texts()) {
    trace.source_units =
        text_units(trace.model(), trace.tokens(PairSide::source), PairSide::source);
  }
  return traces_.emplace_front(std::move(trace));
}

StoredTrace TraceStore::without_interventions(const StoredTrace& trace, StopFlag stop) {
  const std::span<const std::int32_t> source = trace.tokens(PairSide::source);
  const std::span<const std::int32_t> target = trace.tokens(PairSide::target);
  NewTrace wanted{.source = trace.source,
                  .texts = {{source.begin(), source.end()}, {target.begin(), target.end()}}};
  StoredTrace unedited{.id = trace.id, .source = trace.source};
  take(unedited.pass_memory,
       bytes_needed(trace.architecture(), std::ssize(target), std::ssize(source)), 1);
  run(unedited, wanted, {}, stop);
  return unedited;
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
  drop(take_oldest());
  spare_ = {};
  return true;
}

std::size_t TraceStore::keep(const std::vector<std::string>& ids) {
  std::set<std::string> kept;
  for (const std::string& id : ids) {
    const auto found = std::ranges::find(traces_, id, &StoredTrace::id);
    if (found == traces_.end()) continue;
    traces_.splice(traces_.begin(), traces_, found);
    kept.insert(id);
  }
  return kept.size();
}

StoredTrace& TraceStore::use(const std::string& id) {
  const auto found = std::ranges::find(traces_, id, &StoredTrace::id);
  require(found != traces_.end(), ErrorCode::not_found,
          "there is no trace \"{}\": it was evicted, or never created", id.substr(0, 40));
  traces_.splice(traces_.begin(), traces_, found);
  forget_maps_beyond_budget();
  return traces_.front();
}

StoredTrace& TraceStore::use_of_one_text(const std::string& id, std::string_view what) {
  StoredTrace& trace = use(id);
  require(!trace.has_two_texts(), ErrorCode::unsupported,
          "{} of a trace of one text, and trace {} is of a source and a target", what, trace.id);
  return trace;
}

StoredTrace& TraceStore::use_of_two_texts(const std::string& id, std::string_view what) {
  StoredTrace& trace = use(id);
  require(trace.has_two_texts(), ErrorCode::unsupported,
          "{} of a trace of a source and a target, and trace {} is of one text", what, trace.id);
  return trace;
}

// Maps are drawn after their trace is stored, and can be drawn again.
void TraceStore::forget_maps_beyond_budget() {
  for (auto trace = traces_.rbegin(); trace != traces_.rend() && bytes() > budget(); ++trace) {
    trace->attention->forget();
  }
}

void TraceStore::remove(const std::string& id) {
  use(id);
  StoredTrace trace = std::move(traces_.front());
  traces_.pop_front();
  drop(std::move(trace));
}

std::int64_t TraceStore::count_of(const LoadedModel& model) const {
  return std::ranges::count_if(
      traces_, [&](const StoredTrace& trace) { return trace.source.model.get() == &model; });
}

void TraceStore::remove_of(const LoadedModel& model) {
  std::erase_if(traces_,
                [&](const StoredTrace& trace) { return trace.source.model.get() == &model; });
}

StoredTrace TraceStore::take_oldest() {
  StoredTrace trace = std::move(traces_.back());
  traces_.pop_back();
  return trace;
}

void TraceStore::drop(StoredTrace trace) {
  spare_ = {.buffers = trace.pass->take_buffers(), .memory = std::move(trace.pass_memory)};
}

std::int64_t TraceStore::bytes() const {
  std::int64_t maps = 0;
  for (const StoredTrace& trace : traces_) maps += trace.attention->cached_bytes();
  return budget_.held() - spare_.memory.bytes() + maps;
}

namespace {

bool have_one_shape(const StackSpecification& a, const StackSpecification& b) {
  return a.layers == b.layers && a.heads() == b.heads() && a.channels == b.channels &&
         a.head_size() == b.head_size() && a.feed_forward() == b.feed_forward();
}

}  // namespace

RecordedText recorded_text(TraceStore& store, const std::string& id, const Architecture& model) {
  const StoredTrace& trace = model.is_encoder_decoder()
                                 ? store.use_of_two_texts(id, "values are taken")
                                 : store.use_of_one_text(id, "values are taken");
  require(std::ranges::equal(trace.architecture().stacks, model.stacks, have_one_shape),
          ErrorCode::invalid_argument, "trace {} is of a model with a different shape", trace.id);
  const RecordedPass& pass = *trace.pass;
  return {TextLengths::of(pass.texts()), [&pass](Probe& probe) { pass.replay(probe); }};
}

namespace {

OrderedJson text_json(const StoredTrace& trace, PairSide side) {
  return {{"tokens", tokens_json(trace.model(), trace.tokens(side), side)},
          {"words", units_json(trace.units_of(side))},
          {"unread", unread_json(trace.model(), trace.tokens(side), side)}};
}

OrderedJson sites_json(const StoredTrace& trace) {
  OrderedJson sites = OrderedJson::array();
  for (const AttentionSite site : sites_of(trace.architecture())) {
    const AttentionSpecification& attention = attention_of(trace.architecture(), site);
    sites.push_back({{"site", site_name(site)},
                     {"layers", trace.architecture().of(site.stack).layers},
                     {"heads", attention.query_heads},
                     {"queries", trace.queries(site)},
                     {"keys", trace.keys(site)},
                     {"causal", attention.mask.kind != MaskKind::full},
                     {"levels", trace.attention->levels(site)}});
  }
  return sites;
}

}  // namespace

std::string trace_text(const StoredTrace& trace) {
  OrderedJson source{{"name", trace.model().name}, {"run", nullptr}, {"step", nullptr}};
  if (!trace.source.run.empty()) {
    source["run"] = trace.source.run;
    source["step"] = trace.source.step;
  }
  OrderedJson document{{"id", trace.id}};
  if (trace.has_two_texts()) {
    document["source"] = text_json(trace, PairSide::source);
    document["target"] = text_json(trace, PairSide::target);
    document["target"]["is_translation"] = trace.is_translation;
  } else {
    document.update(text_json(trace, PairSide::target));
  }
  document["read"] = read_json(trace.model().reading);
  document["sites"] = sites_json(trace);
  document["bytes"] = trace.bytes();
  document["seconds"] = json_number(trace.seconds);
  document["interventions"] = nullptr;
  document["base"] = trace.base.empty() ? OrderedJson(nullptr) : OrderedJson(trace.base);
  document["model"] = std::move(source);
  if (!trace.has_two_texts()) {
    document["layers"] = trace.specification().layers;
    document["heads"] = trace.specification().heads();
    document["levels"] = trace.attention->levels(only_site);
    document["dimensions"] = dimensions_json(trace.specification());
  }
  return with_member(document, "interventions", trace.interventions.text);
}

}  // namespace heed::server
