// Parses interventions in requests.
#pragma once

#include <memory>
#include <span>

#include "base/json.h"
#include "microscope/intervene/intervention.h"
#include "server/explorer/intervention_fields.h"
#include "server/explorer/trace_store.h"

namespace heed::server {

struct InterventionSource {
  const Transformer& gpt;
  std::span<const std::int32_t> tokens;  // the text that is to be changed
  TraceStore& traces;                    // that others are taken from
  std::int64_t last_position;            // the largest that may be selected
  TakeMemory take_memory;                // called before an intervention holds memory
  StopFlag stop = nullptr;
};

// `list` is null or a list of objects {"kind", "point", …}; null or empty gives null. The traces
// that it names must stay until it returns (TraceStore::keep). Throws Error{invalid_argument} with
// the index of the invalid intervention, Error{interrupted} when stopped, and what take_memory
// throws.
std::shared_ptr<Interventions> read_interventions(const Json& list,
                                                  const InterventionSource& source);

}  // namespace heed::server
