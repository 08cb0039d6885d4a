#include "tokenizer/merger.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "base/error.h"

namespace heed {
namespace {

constexpr std::uint32_t no_rank = UINT32_MAX;

// Up to here the linear scan is faster than a heap (they meet at about 100 bytes of one class).
constexpr std::size_t max_short_word = 96;

}  // namespace

Merger::Merger(const std::array<std::int32_t, 256>& byte_ids, const std::vector<MergeRule>& rules)
    : byte_ids_(byte_ids), outcomes_(rules.size()) {
  for (std::size_t rank = 0; rank < rules.size(); ++rank) {
    const auto [outcome, absent] = outcomes_.insert({rules[rank].left, rules[rank].right});
    check(absent, "every pair has one merge rule");
    outcome = {static_cast<std::uint32_t>(rank), rules[rank].result};
  }
}

// Inlined even though several kinds of words use it: most of the time of merging is spent here.
[[gnu::always_inline]] inline Merger::Outcome Merger::outcome(std::int32_t left,
                                                              std::int32_t right) const {
  const Outcome* found = outcomes_.find({left, right});
  return found != nullptr ? *found : Outcome{no_rank, 0};
}

void Merger::append_tokens(std::string_view word, std::vector<std::int32_t>& tokens) const {
  append_merged(
      word.size(), [&](std::size_t i) { return byte_ids_[static_cast<unsigned char>(word[i])]; },
      tokens);
}

void Merger::append_tokens(std::span<const std::int32_t> word,
                           std::vector<std::int32_t>& tokens) const {
  append_merged(
      word.size(), [&](std::size_t i) { return word[i]; }, tokens);
}

template <class IdAt>
void Merger::append_merged(std::size_t count, IdAt id_at, std::vector<std::int32_t>& tokens) const {
  if (count <= max_short_word) {
    append_short(count, id_at, tokens);
  } else {
    append_long(count, id_at, tokens);
  }
}

template <class IdAt>
void Merger::append_short(std::size_t count, IdAt id_at, std::vector<std::int32_t>& tokens) const {
  std::array<std::int32_t, max_short_word> ids;
  std::array<Outcome, max_short_word> pairs;  // pairs[i] joins ids[i] and ids[i + 1]
  for (std::size_t i = 0; i < count; ++i) ids[i] = id_at(i);
  for (std::size_t i = 0; i + 1 < count; ++i) pairs[i] = outcome(ids[i], ids[i + 1]);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == no_rank) break;
    ids[best] = pairs[best].result;
    --count;
    std::copy(ids.begin() + best + 2, ids.begin() + count + 1, ids.begin() + best + 1);
    std::copy(pairs.begin() + best + 1, pairs.begin() + count, pairs.begin() + best);
    if (best > 0) pairs[best - 1] = outcome(ids[best - 1], ids[best]);
    if (best + 1 < count) pairs[best] = outcome(ids[best], ids[best + 1]);
  }
  tokens.insert(tokens.end(), ids.begin(), ids.begin() + count);
}

template <class IdAt>
void Merger::append_long(std::size_t size, IdAt id_at, std::vector<std::int32_t>& tokens) const {
  require(size < UINT32_MAX, ErrorCode::unsupported,
          "a word of {} bytes or characters without a break; expected fewer than {}", size,
          UINT32_MAX);
  // A doubly linked list of symbols; a symbol stays at the place of its first byte. The heap holds
  // (rank, place), and an entry counts only while the pair at that place still has that rank.
  struct Symbol {
    std::int32_t id;
    std::uint32_t before;
    std::uint32_t after;
    Outcome pair;  // with the symbol after
  };
  const auto count = static_cast<std::uint32_t>(size);
  const std::uint32_t none = UINT32_MAX;
  std::vector<Symbol> symbols(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    symbols[i] = {id_at(i), i == 0 ? none : i - 1, i + 1 == count ? none : i + 1, {no_rank, 0}};
  }
  const auto entry = [](std::uint32_t rank, std::uint32_t place) {
    return static_cast<std::uint64_t>(rank) << 32 | place;
  };
  std::vector<std::uint64_t> entries;
  for (std::uint32_t i = 0; i + 1 < count; ++i) {
    symbols[i].pair = outcome(symbols[i].id, symbols[i + 1].id);
    if (symbols[i].pair.rank != no_rank) entries.push_back(entry(symbols[i].pair.rank, i));
  }
  std::priority_queue heap(std::greater<std::uint64_t>{}, std::move(entries));
  const auto renew = [&](std::uint32_t place) {
    Symbol& symbol = symbols[place];
    symbol.pair =
        symbol.after == none ? Outcome{no_rank, 0} : outcome(symbol.id, symbols[symbol.after].id);
    if (symbol.pair.rank != no_rank) heap.push(entry(symbol.pair.rank, place));
  };
  while (!heap.empty()) {
    const auto rank = static_cast<std::uint32_t>(heap.top() >> 32);
    const auto place = static_cast<std::uint32_t>(heap.top());
    heap.pop();
    Symbol& symbol = symbols[place];
    if (symbol.pair.rank != rank) continue;
    Symbol& absorbed = symbols[symbol.after];
    symbol.id = symbol.pair.result;
    symbol.after = absorbed.after;
    absorbed.pair.rank = no_rank;
    if (symbol.after != none) symbols[symbol.after].before = place;
    renew(place);
    if (symbol.before != none) renew(symbol.before);
  }
  for (std::uint32_t i = 0; i != none; i = symbols[i].after) tokens.push_back(symbols[i].id);
}

}  // namespace heed
