// The description of a model in the public interface's terms.
#pragma once

#include "heed/heed.h"
#include "model/transformer.h"

namespace heed {

ModelArchitecture describe_architecture(const Transformer& gpt);

}  // namespace heed
