// Traces that are held for the page: each one pass over a text, with what changed it.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "microscope/attention/kept_attention.h"
#include "microscope/intervene/intervention.h"
#include "server/explorer/model_pool.h"

namespace heed::server {

struct StoredTrace {
  std::string id;
  ChosenModel source;
  std::unique_ptr<KeptPass> pass;
  std::unique_ptr<KeptAttention> attention;
  Json interventions = Json::array();  // as they were asked for
  std::string base;                    // id of the trace whose tokens it took; empty: none
  double seconds = 0;                  // that the pass took
  std::int64_t bytes = 0;

  const LoadedModel& model() const { return *source.model; }
  const GptConfig& config() const { return model().gpt.config(); }
  std::int64_t positions() const { return pass->positions(); }
};

class TraceStore {
 public:
  explicit TraceStore(std::int64_t budget) : budget_(budget) {}

  struct NewTrace {
    ChosenModel source;
    std::vector<std::int32_t> tokens;
    std::shared_ptr<Interventions> editor;  // null: nobody
    Json interventions = Json::array();
    std::string base;
  };

  // Makes room by dropping those used longest ago, reads the text and keeps the pass. Throws
  // HttpError{413} with the size needed where the budget could not hold it.
  const StoredTrace& add(NewTrace wanted);

  // Throws HttpError{413} as add() would.
  void require_room(const GptConfig& config, std::int64_t positions) const;

  // Marks it as used. Throws Error{not_found}.
  StoredTrace& use(const std::string& id);
  void remove(const std::string& id);

  const std::list<StoredTrace>& all() const { return traces_; }  // the one used last first
  std::int64_t bytes() const;
  std::int64_t budget() const { return budget_; }

  static std::int64_t bytes_needed(const GptConfig& config, std::int64_t positions);

 private:
  void drop(std::list<StoredTrace>::iterator trace);

  std::int64_t budget_;
  std::list<StoredTrace> traces_;
  KeptPass::Buffers spare_;  // of the trace that was dropped last
  std::int64_t spare_bytes_ = 0;
  std::int64_t made_ = 0;
};

// {"id", "tokens", "bytes", "seconds", "interventions", …}
OrderedJson trace_json(StoredTrace& trace);

}  // namespace heed::server
