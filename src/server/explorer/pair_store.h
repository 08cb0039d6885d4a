// The stored pairs of the page: each a pass over two texts, with its interventions.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/pair_model.h"
#include "microscope/attention/pair_statistics.h"

namespace heed::server {

struct StoredPair {
  std::string id;
  std::unique_ptr<PairPass> pass;
  std::unique_ptr<PairAttention> attention;
  std::vector<TextWord> source_words;
  std::vector<TextWord> target_words;
  bool is_translation = false;
  Json interventions = Json::array();  // as requested
  std::string base;                    // the pair whose texts it uses; empty: none
  double seconds = 0;                  // duration of the pass
  std::int64_t bytes = 0;

  PairWords words() const { return {source_words, target_words}; }
  const std::vector<TextWord>& query_words(PairAttentionKind kind) const {
    return kind == PairAttentionKind::encoder ? source_words : target_words;
  }
  const std::vector<TextWord>& key_words(PairAttentionKind kind) const {
    return kind == PairAttentionKind::decoder ? target_words : source_words;
  }
};

class PairStore {
 public:
  explicit PairStore(std::int64_t budget) : budget_(budget) {}

  struct NewPair {
    PairTexts texts;
    std::shared_ptr<Interventions> editor;  // or null
    Json interventions = Json::array();
    std::string base;
  };
  // Evicts the least recently used pairs, runs the model and stores the pass. Throws HttpError{413}
  // where the pass alone exceeds the budget.
  StoredPair& add(const PairModel& model, NewPair wanted);

  // Marks it as used. Throws Error{not_found}.
  StoredPair& use(const std::string& id);
  void remove(const std::string& id);

  const std::list<StoredPair>& all() const { return pairs_; }  // most recently used first

 private:
  std::int64_t bytes() const;

  std::int64_t budget_;
  std::list<StoredPair> pairs_;
  std::int64_t made_ = 0;
};

// {"id", "source", "target", "kinds", "interventions", "base", "model", "bytes", "seconds"}
OrderedJson pair_json(const PairModel& model, const StoredPair& pair);

}  // namespace heed::server
