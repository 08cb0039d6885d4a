// Interventions in requests about pairs of texts.
#pragma once

#include <memory>

#include "base/json.h"
#include "server/explorer/pair_store.h"

namespace heed::server {

struct PairInterventionSource {
  const PairModel& model;
  const PairTokens& tokens;  // the texts whose pass is to be changed
  PairStore& pairs;          // that others are taken from
};

// `list` is null or a list of objects {"kind", "point", …}; null or empty gives null. Throws
// Error{invalid_argument} with the index of the invalid intervention.
std::shared_ptr<Interventions> read_pair_interventions(const Json& list,
                                                       const PairInterventionSource& source);

}  // namespace heed::server
