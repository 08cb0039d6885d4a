// The tables of filters.
#pragma once

#include <span>

#include "chat/built_in.h"

namespace heed::chat {

std::span<const Filter> text_filters();    // of strings and numbers
std::span<const Filter> list_filters();    // of lists and dictionaries
std::span<const Filter> choice_filters();  // that choose or map elements
std::span<const Filter> group_filters();   // that divide lists
std::span<const Filter> markup_filters();  // that write HTML and addresses

}  // namespace heed::chat
