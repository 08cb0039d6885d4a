// The stored traces of the page: each a pass over a text, with its interventions.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "microscope/attention/recorded_attention.h"
#include "microscope/attention/text_words.h"
#include "microscope/intervene/intervention.h"
#include "server/explorer/intervention_fields.h"
#include "server/explorer/intervention_json.h"
#include "server/explorer/memory_budget.h"
#include "server/explorer/model_pool.h"
#include "server/explorer/recently_used.h"

namespace heed::server {

struct StoredTrace {
  std::string id;
  ChosenModel source;
  std::unique_ptr<RecordedPass> pass;
  std::unique_ptr<RecordedAttention> attention;
  RequestedList interventions{};
  std::string base;    // id of the trace whose tokens it uses; empty: none
  double seconds = 0;  // duration of the pass
  MemoryBudget::Share pass_memory{};
  MemoryBudget::Share held{};     // by its interventions
  std::vector<TextWord> units{};  // the words and the tokens between them

  std::int64_t bytes() const { return pass_memory.bytes() + held.bytes(); }
  const LoadedModel& model() const { return *source.model; }
  const StackSpecification& specification() const { return model().gpt.specification(); }
  std::int64_t positions() const { return pass->positions(); }
};

class TraceStore {
 public:
  explicit TraceStore(std::int64_t budget) : budget_(budget) {}

  struct NewTrace {
    ChosenModel source;
    std::vector<std::int32_t> tokens;
    std::shared_ptr<Interventions> editor{};  // or null
    RequestedList interventions{};
    MemoryBudget::Share held{};  // by the two above, as counted by take()
    std::string base{};
  };

  // Evicts the least recently used traces, runs the model on the text and stores the pass. Throws
  // HttpError as take() for the pass, and Error{interrupted} when stopped.
  const StoredTrace& add(NewTrace wanted, StopFlag stop = nullptr);

  // Counts memory that a request is about to hold beside the traces: evicts the least recently used
  // ones, but none of the `kept` most recently used. Throws HttpError{413, 429} where it does not
  // fit.
  void take(MemoryBudget::Share& share, std::int64_t bytes, std::size_t kept);

  // Marks those of the traces that exist as used. Returns their number: the `kept` of take().
  std::size_t keep(const std::vector<std::string>& ids) { return traces_.keep(ids); }

  // Throws HttpError{413} where a trace of so many positions exceeds the budget.
  void require_room(const StackSpecification& config, std::int64_t positions) const;

  // Marks it as used. Throws Error{not_found}.
  StoredTrace& use(const std::string& id);
  void remove(const std::string& id);

  const std::list<StoredTrace>& all() const { return traces_.all(); }  // most recently used first
  // Of the traces, with what their interventions hold and the maps that were drawn of them, and of
  // the requests that are making one.
  std::int64_t bytes() const;
  std::int64_t budget() const { return budget_.limit(); }

  static std::int64_t bytes_needed(const StackSpecification& config, std::int64_t positions);

 private:
  // Buffers of a dropped trace, for the next one of the same size.
  struct Spare {
    RecordedBuffers buffers{};
    MemoryBudget::Share memory{};
  };
  void drop(StoredTrace trace);
  bool evict(std::size_t kept);
  void forget_maps_beyond_budget();

  MemoryBudget budget_;
  RecentlyUsed<StoredTrace> traces_{"trace"};
  Spare spare_;
  std::int64_t made_ = 0;
};

// As interventions take values from it. Throws Error{not_found}.
RecordedText recorded_text(TraceStore& store, const std::string& id);

// {"id", "tokens", "bytes", "seconds", "interventions", …}
std::string trace_text(const StoredTrace& trace);

}  // namespace heed::server
