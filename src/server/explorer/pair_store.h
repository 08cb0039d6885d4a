// The stored pairs of the page: each a pass over two texts, with its interventions.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/pair_model.h"
#include "microscope/attention/alignment.h"
#include "server/explorer/intervention_fields.h"
#include "server/explorer/memory_budget.h"
#include "server/explorer/recently_used.h"

namespace heed::server {

struct StoredPair {
  std::string id;
  std::unique_ptr<RecordedPass> pass;
  std::unique_ptr<RecordedAttention> attention;
  std::vector<TextWord> source_words;
  std::vector<TextWord> target_words;
  bool is_translation = false;
  RequestedList interventions{};
  std::string base;              // the pair whose texts it uses; empty: none
  double seconds = 0;            // duration of the pass
  MemoryBudget::Share memory{};  // of the pass and of what its interventions hold

  PairWords words() const { return {source_words, target_words}; }
  const std::vector<TextWord>& query_words(AttentionSite kind) const {
    return kind == encoder_site ? source_words : target_words;
  }
  const std::vector<TextWord>& key_words(AttentionSite kind) const {
    return kind == decoder_site ? target_words : source_words;
  }
};

class PairStore {
 public:
  explicit PairStore(std::int64_t budget) : budget_(budget) {}

  struct NewPair {
    PairTexts texts;
    std::shared_ptr<Interventions> editor{};  // or null
    RequestedList interventions{};
    MemoryBudget::Share held{};  // by the two above, as counted by take()
    std::string base{};
  };
  // Evicts the least recently used pairs, runs the model and stores the pass. Throws HttpError as
  // take() for the pass.
  StoredPair& add(const PairModel& model, NewPair wanted);

  // Counts memory that a request is about to hold beside the pairs: evicts the least recently used
  // ones, but none of the `kept` most recently used. Throws HttpError{413, 429} where it does not
  // fit.
  void take(MemoryBudget::Share& share, std::int64_t bytes, std::size_t kept);

  // Marks those of the pairs that exist as used. Returns their number: the `kept` of take().
  std::size_t keep(const std::vector<std::string>& ids) { return pairs_.keep(ids); }

  // Marks it as used. Throws Error{not_found}.
  StoredPair& use(const std::string& id) { return pairs_.use(id); }
  void remove(const std::string& id) {
    use(id);
    pairs_.take_newest();
  }

  const std::list<StoredPair>& all() const { return pairs_.all(); }  // most recently used first
  std::int64_t bytes() const { return budget_.held(); }

 private:
  MemoryBudget budget_;
  RecentlyUsed<StoredPair> pairs_{"pair"};
  std::int64_t made_ = 0;
};

// {"id", "source", "target", "kinds", "interventions", "base", "model", "bytes", "seconds"}
std::string pair_text(const PairModel& model, const StoredPair& pair);

}  // namespace heed::server
