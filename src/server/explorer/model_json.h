// Descriptions of models for the page, with sentences to look at.
#pragma once

#include "base/json.h"
#include "engine/loaded_model.h"
#include "model/architecture.h"

namespace heed::server {

// {"vocabulary", "context", "channels", "layers", "heads", "head_size", "feed_forward",
//  "parameters"}
OrderedJson dimensions_json(const StackSpecification& config);

// {"name", "embedded", "parameters", "encoder", "decoder", "languages", "read",
//  "architecture", "examples"}
OrderedJson translator_json(const LoadedModel& translator);

// The examples for a model: for one that heed carries its own (engine/measured_examples.h), for
// others sentences of general interest, and of another translator none.
OrderedJson examples_json(const LoadedModel& model);

}  // namespace heed::server
