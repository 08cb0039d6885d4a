// Sampling options as fields of a request, parameters of a query, and in replies and OpenAPI: by
// the table of heed/sampling.h.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "heed/sampling.h"
#include "server/exchange.h"
#include "server/fields.h"

namespace heed::server {

// A request without "seed", or with -1, gets a random one. Throws FieldError.
SamplingOptions read_sampling(const Fields& fields);

// The same of a query, which has no seed. Throws Error{invalid_argument}.
SamplingOptions read_sampling(const Request& request);

// "logit_bias": pairs of a token id and what is added to its logit. Throws FieldError.
std::vector<std::pair<std::int32_t, float>> read_logit_bias(const Fields& fields,
                                                            std::int64_t vocabulary);

// Every option but the seed, by the name of its field.
OrderedJson sampling_json(const SamplingOptions& options);

// The OpenAPI schema of each, by the name of its field.
OrderedJson sampling_schemas();

// The options that the page has a control for.
OrderedJson sampling_table_json();

}  // namespace heed::server
