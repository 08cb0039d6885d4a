// The stored traces of the page: each a pass over one text, or over a source and a target, with its
// interventions.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "microscope/attention/alignment.h"
#include "microscope/attention/recorded_attention.h"
#include "microscope/attention/text_words.h"
#include "microscope/intervene/intervention.h"
#include "server/explorer/intervention_fields.h"
#include "server/explorer/intervention_json.h"
#include "server/explorer/memory_budget.h"
#include "server/explorer/model_pool.h"

namespace heed::server {

// One text is a target without a source.
struct StoredTrace {
  std::string id;
  ChosenModel source;
  std::unique_ptr<RecordedPass> pass{};
  std::unique_ptr<RecordedAttention> attention{};
  bool is_translation = false;  // the target is the model's own
  RequestedList interventions{};
  std::string base{};  // id of the trace whose texts it uses; empty: none
  double seconds = 0;  // duration of the pass
  MemoryBudget::Share pass_memory{};
  MemoryBudget::Share held{};            // by its interventions
  std::vector<TextWord> units{};         // of the target: its words and the tokens between them
  std::vector<TextWord> source_units{};  // of the source

  std::int64_t bytes() const { return pass_memory.bytes() + held.bytes(); }
  bool has_two_texts() const { return source.model->is_translator(); }
  const Architecture& architecture() const { return source.model->architecture(); }
  std::span<const std::int32_t> tokens(PairSide side) const;
  const char* name_of(PairSide side) const;  // "text", "source" or "target", for messages
  // Throws Error{invalid_argument} for a site that the model does not have.
  AttentionSite site(const std::string& name) const;
  PairSide query_side(AttentionSite site) const;
  PairSide key_side(AttentionSite site) const;
  const std::vector<TextWord>& units_of(PairSide side) const {
    return side == PairSide::source ? source_units : units;
  }
  std::int64_t queries(AttentionSite site) const { return std::ssize(tokens(query_side(site))); }
  std::int64_t keys(AttentionSite site) const { return std::ssize(tokens(key_side(site))); }
  PairWords words() const { return {source_units, units}; }

  Trace arrays(const TraceRequest& request, const GradientTarget& target = {}) const;

  const LoadedModel& model() const { return *source.model; }
  // Of one text.
  const StackSpecification& specification() const { return model().transformer.specification(); }
  // Of the text, or of the target.
  std::int64_t positions() const { return std::ssize(tokens(PairSide::target)); }
};

class TraceStore {
 public:
  explicit TraceStore(std::int64_t budget) : budget_(budget) {}

  struct NewTrace {
    ChosenModel source;
    Texts texts{};
    bool is_translation = false;
    std::shared_ptr<Interventions> editor{};  // or null
    RequestedList interventions{};
    MemoryBudget::Share held{};  // by the two above, as counted by take()
    std::string base{};
  };

  // Evicts the least recently used traces, runs the model on the texts and stores the pass. Throws
  // HttpError as take() for the pass, and Error{interrupted} when stopped.
  const StoredTrace& add(NewTrace wanted, StopFlag stop = nullptr);

  // A pass over the texts of a trace that was used last, without its interventions, and not stored.
  // Throws as add().
  StoredTrace without_interventions(const StoredTrace& trace, StopFlag stop);

  // Counts memory that a request is about to hold beside the traces: evicts the least recently used
  // ones, but none of the `kept` most recently used. Throws HttpError{413, 429} where it does not
  // fit.
  void take(MemoryBudget::Share& share, std::int64_t bytes, std::size_t kept);

  // Marks those of the traces that exist as used. Returns their number: the `kept` of take().
  std::size_t keep(const std::vector<std::string>& ids);

  // Throws HttpError{413} where a trace of so many tokens exceeds the budget.
  void require_room(const Architecture& architecture, std::int64_t targets,
                    std::int64_t sources = 0) const;

  // Marks it as used. Throws Error{not_found}.
  StoredTrace& use(const std::string& id);
  // The same of a trace of one text, or of two, for `what`. Throws Error{unsupported} for another.
  StoredTrace& use_of_one_text(const std::string& id, std::string_view what);
  StoredTrace& use_of_two_texts(const std::string& id, std::string_view what);
  void remove(const std::string& id);

  // Of the stored traces, how many are of this model; and forgets them.
  std::int64_t count_of(const LoadedModel& model) const;
  void remove_of(const LoadedModel& model);

  const std::list<StoredTrace>& all() const { return traces_; }  // most recently used first
  // Of the traces, with what their interventions hold and the maps that were drawn of them, and of
  // the requests that are making one.
  std::int64_t bytes() const;
  std::int64_t budget() const { return budget_.limit(); }

  static std::int64_t bytes_needed(const Architecture& architecture, std::int64_t targets,
                                   std::int64_t sources = 0);

 private:
  // Buffers of a dropped trace, for the next one of the same size.
  struct Spare {
    RecordedBuffers buffers{};
    MemoryBudget::Share memory{};
  };
  void run(StoredTrace& trace, NewTrace& wanted, RecordedBuffers buffers, StopFlag stop) const;
  StoredTrace take_oldest();
  void drop(StoredTrace trace);
  bool evict(std::size_t kept);
  void forget_maps_beyond_budget();

  MemoryBudget budget_;
  std::list<StoredTrace> traces_;  // most recently used first
  Spare spare_;
  std::int64_t made_ = 0;
};

// As interventions in passes of `model` take it; the trace is marked as used. Throws
// Error{not_found}, Error{unsupported} for a trace of as many texts as the model does not read, and
// Error{invalid_argument} for one of a model of another shape.
RecordedText recorded_text(TraceStore& store, const std::string& id, const Architecture& model);

// {"id", "tokens" and "words", or "source" and "target" with them, "sites", "bytes", "seconds",
//  "interventions", …}
std::string trace_text(const StoredTrace& trace);

}  // namespace heed::server
