// The stored traces of the page: each a pass over a text, with its interventions.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "microscope/attention/kept_attention.h"
#include "microscope/attention/text_words.h"
#include "microscope/intervene/intervention.h"
#include "server/explorer/model_pool.h"

namespace heed::server {

struct StoredTrace {
  std::string id;
  ChosenModel source;
  std::unique_ptr<KeptPass> pass;
  std::unique_ptr<KeptAttention> attention;
  Json interventions = Json::array();  // as requested
  std::string base;                    // id of the trace whose tokens it uses; empty: none
  double seconds = 0;                  // duration of the pass
  std::int64_t bytes = 0;
  std::vector<TextWord> units{};  // the words and the tokens between them

  const LoadedModel& model() const { return *source.model; }
  const StackSpecification& config() const { return model().gpt.config(); }
  std::int64_t positions() const { return pass->positions(); }
};

class TraceStore {
 public:
  explicit TraceStore(std::int64_t budget) : budget_(budget) {}

  struct NewTrace {
    ChosenModel source;
    std::vector<std::int32_t> tokens;
    std::shared_ptr<Interventions> editor;  // or null
    Json interventions = Json::array();
    std::string base;
  };

  // Evicts the least recently used traces, runs the model on the text and stores the pass. Throws
  // HttpError{413} with the required size if it exceeds the budget.
  const StoredTrace& add(NewTrace wanted);

  // Throws HttpError{413} as add() would.
  void require_room(const StackSpecification& config, std::int64_t positions) const;

  // Marks it as used. Throws Error{not_found}.
  StoredTrace& use(const std::string& id);
  void remove(const std::string& id);

  const std::list<StoredTrace>& all() const { return traces_; }  // most recently used first
  std::int64_t bytes() const;
  std::int64_t budget() const { return budget_; }

  static std::int64_t bytes_needed(const StackSpecification& config, std::int64_t positions);

 private:
  void drop(std::list<StoredTrace>::iterator trace);

  std::int64_t budget_;
  std::list<StoredTrace> traces_;
  KeptPass::Buffers spare_;  // of the last evicted trace
  std::int64_t spare_bytes_ = 0;
  std::int64_t made_ = 0;
};

// {"id", "tokens", "bytes", "seconds", "interventions", …}
OrderedJson trace_json(StoredTrace& trace);

}  // namespace heed::server
