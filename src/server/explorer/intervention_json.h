// Parses interventions in requests, in one text or in a source and its target.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/json.h"
#include "microscope/intervene/intervention_text.h"
#include "server/explorer/intervention_fields.h"
#include "server/explorer/recorded_values.h"

namespace heed::server {

// A recorded pass, from which interventions take values.
struct RecordedText {
  TextLengths lengths;
  RecordedValues::Replay replay;
};

struct InterventionSource {
  const Transformer& model;
  const Texts& texts;  // that are to be changed
  // The pass of an id, which stays until read_interventions() returns. Throws Error{not_found}.
  std::function<RecordedText(const std::string& id)> recorded;
  WordsOf words;
  std::int64_t positions = 0;  // of the target that may be selected; 0: as many as it has
  TakeMemory take_memory;      // called before an intervention holds memory
  StopFlag stop = nullptr;
};

// `list` is null or a list of objects {"kind", "point", …}; null or empty gives null. Throws
// Error{invalid_argument} with the index of the invalid intervention, Error{interrupted} when
// stopped, and what `recorded` and take_memory throw.
std::shared_ptr<Interventions> read_interventions(const Json& list,
                                                  const InterventionSource& source);

}  // namespace heed::server
