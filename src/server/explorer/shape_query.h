// The shape of a model, as a query describes it.
#pragma once

#include <string>

#include "server/explorer/state.h"

namespace heed::server {

// ?config=, a preset; else the served model's shape, changed by ?layers=, ?heads= and so on. `name`
// is set to what the shape is called. Throws Error{not_found} and Error{invalid_argument}.
StackSpecification shape_of(const State& state, const Request& request, std::string& name);

bool truth(const Request& request, const std::string& name, bool fallback);

}  // namespace heed::server
