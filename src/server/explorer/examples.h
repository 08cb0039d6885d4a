// Example sentences for the explanation of attention.
#pragma once

#include "base/json_fwd.h"
#include "engine/loaded_model.h"
#include "engine/loaded_translator.h"

namespace heed::server {

// The examples for a model, as JSON for the page: for the starter model those that were measured
// with it (engine/measured_examples.h), for others sentences of general interest.
OrderedJson examples_json(const LoadedModel& model);

// Those of the translator that heed carries (engine/pair_examples.h); of others none.
OrderedJson translator_examples_json(const LoadedTranslator& translator);

}  // namespace heed::server
