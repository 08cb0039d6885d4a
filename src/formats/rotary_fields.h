// The fields of rotary positions, shared by the formats that have them.
#pragma once

#include "base/json_fwd.h"
#include "formats/config_fields.h"

namespace heed {

// `context` is that of the config: what a scaling begins from, unless it names another.
// `rope_theta` and `rope_scaling`, or `rope_parameters`. Throws Error{unsupported} for a scaling
// that heed does not know.
void read_rotary(const ConfigFields& fields, std::int64_t context, RotarySpecification& rotary);
// `rope_scaling`, where there is one.
void write_rotary_scaling(const RotarySpecification& rotary, OrderedJson& json);

}  // namespace heed
