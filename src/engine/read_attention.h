// Implementation of Model::read_attention() and Model::heads().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/attention.h"
#include "model/transformer.h"

namespace heed {

std::vector<HeadSummary> summarise_heads(const Transformer& gpt,
                                         std::span<const std::int32_t> tokens);

}  // namespace heed
