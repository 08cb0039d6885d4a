#include "server/explorer/pair_store.h"

#include <chrono>

#include "base/error.h"
#include "engine/pair_json.h"
#include "server/exchange.h"

namespace heed::server {
namespace {

OrderedJson kinds_json(const StoredPair& pair) {
  const Architecture& architecture = pair.pass->architecture();
  OrderedJson kinds = OrderedJson::array();
  for (const AttentionSite kind : sites_of(architecture)) {
    const AttentionSpecification& attention = attention_of(architecture, kind);
    kinds.push_back({{"kind", site_name(kind)},
                     {"layers", architecture.of(kind.stack).layers},
                     {"heads", attention.query_heads},
                     {"queries", pair.pass->queries(kind)},
                     {"keys", pair.pass->keys(kind)},
                     {"causal", attention.mask.kind != MaskKind::full},
                     {"levels", pair.attention->levels(kind)}});
  }
  return kinds;
}

}  // namespace

StoredPair& PairStore::add(const PairModel& model, NewPair wanted) {
  const Texts& tokens = wanted.texts.tokens;
  require_texts_fit(model.architecture(), tokens);
  const std::int64_t sources = std::ssize(tokens.source), targets = std::ssize(tokens.target);
  const std::int64_t needed =
      RecordedPass::bytes_needed(model.architecture(), targets, sources) +
      RecordedAttention::bytes_needed(model.architecture(), targets, sources);
  if (needed > budget_.limit()) {
    throw HttpError(413, fmt::format("a pair of {} and {} tokens needs {}, more than the {} that "
                                     "traces may take: shorten the texts, or start with more: "
                                     "--trace-budget",
                                     tokens.source.size(), tokens.target.size(), size_text(needed),
                                     size_text(budget_.limit())));
  }
  take(wanted.held, needed, 0);

  StoredPair pair{.id = fmt::format("p{}", ++made_),
                  .source_words = model.words(PairSide::source, tokens.source),
                  .target_words = model.words(PairSide::target, tokens.target),
                  .is_translation = wanted.texts.is_translation,
                  .interventions = std::move(wanted.interventions),
                  .base = std::move(wanted.base),
                  .memory = std::move(wanted.held)};
  const auto begin = std::chrono::steady_clock::now();
  pair.pass = std::make_unique<RecordedPass>(*model.model, std::move(wanted.texts.tokens),
                                             std::move(wanted.editor));
  pair.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  pair.attention = std::make_unique<RecordedAttention>(*pair.pass);
  return pairs_.add(std::move(pair));
}

void PairStore::take(MemoryBudget::Share& share, std::int64_t bytes, std::size_t kept) {
  budget_.take(share, bytes, [&] {
    if (pairs_.size() <= kept) return false;
    pairs_.take_oldest();
    return true;
  });
}

std::string pair_text(const PairModel& model, const StoredPair& pair) {
  const Texts& tokens = pair.pass->texts();
  OrderedJson target = pair_text_json(model, PairSide::target, tokens.target);
  target["is_translation"] = pair.is_translation;
  const OrderedJson document{
      {"id", pair.id},
      {"source", pair_text_json(model, PairSide::source, tokens.source)},
      {"target", std::move(target)},
      {"kinds", kinds_json(pair)},
      {"interventions", nullptr},
      {"base", pair.base.empty() ? OrderedJson(nullptr) : OrderedJson(pair.base)},
      {"model", model.name},
      {"bytes", pair.memory.bytes()},
      {"seconds", json_number(pair.seconds)}};
  return with_member(document, "interventions", pair.interventions.text);
}

}  // namespace heed::server
