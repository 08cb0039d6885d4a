// What commands say of words that a model has not read.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/json_fwd.h"
#include "engine/loaded_model.h"

namespace heed::cli {

// A note on standard error; nothing where the model has read every word, or where that is not
// known.
void tell_of_unread(const LoadedModel& model, std::span<const std::int32_t> tokens,
                    PairSide side = PairSide::target);
void tell_of_unread(const LoadedModel& translator, std::string_view sources);

// The members "read" and "unread" of a text's document.
void add_reading(OrderedJson& document, const LoadedModel& model,
                 std::span<const std::int32_t> tokens);

}  // namespace heed::cli
