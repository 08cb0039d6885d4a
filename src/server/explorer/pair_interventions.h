// Interventions in requests about pairs of texts.
#pragma once

#include <memory>

#include "base/json.h"
#include "server/explorer/intervention_fields.h"
#include "server/explorer/trace_store.h"

namespace heed::server {

struct PairInterventionSource {
  const PairModel& model;
  const Texts& tokens;     // the texts whose pass is to be changed
  TraceStore& pairs;       // that others are taken from
  TakeMemory take_memory;  // called before an intervention holds memory
  StopFlag stop = nullptr;
};

// `list` is null or a list of objects {"kind", "point", …}; null or empty gives null. The traces
// that it names must stay until it returns (TraceStore::keep). Throws Error{invalid_argument} with
// the index of the invalid intervention, Error{interrupted} when stopped, and what take_memory
// throws.
std::shared_ptr<Interventions> read_pair_interventions(const Json& list,
                                                       const PairInterventionSource& source);

}  // namespace heed::server
