// Sampling options as fields of a request and of /props. Defaults are those of SamplingOptions, as
// in the command line.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "generate/sampler.h"
#include "server/fields.h"

namespace heed::server {

// A request without "seed", or with -1, gets a random one. Throws FieldError.
SamplingOptions read_sampling(const Fields& fields, std::int64_t vocabulary);

// "logit_bias": pairs of a token id and what is added to its logit. Throws FieldError.
std::vector<std::pair<std::int32_t, float>> read_logit_bias(const Fields& fields,
                                                            std::int64_t vocabulary);

// Every option but the seed, by the name of its field.
OrderedJson sampling_json(const SamplingOptions& options);

}  // namespace heed::server
