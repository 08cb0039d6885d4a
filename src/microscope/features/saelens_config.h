// cfg.json of SAELens, of version 6 and older ones.
#pragma once

#include <string>

#include "base/json_fwd.h"
#include "microscope/features/dictionary.h"

namespace heed {

struct SaelensConfig {
  DictionarySpecification specification{};
  bool has_skip = false;              // W_skip
  bool has_decoder_scale = false;     // scaling_factor (F), of the rows of W_dec
  bool rescales_by_decoder = false;   // rows of W_dec divided by their norms, W_enc multiplied
  bool expects_average_norm = false;  // expected_average_only_in
};

// Throws Error{corrupt_data} for a missing or impossible field, with its name, and
// Error{unsupported} for an architecture, an activation or a norm that heed does not know.
SaelensConfig read_saelens_config(const Json& config, const std::string& source);

}  // namespace heed
