// The tables of methods.
#pragma once

#include <span>

#include "chat/built_in.h"

namespace heed::chat {

std::span<const Method> search_methods();  // of strings: finding, dividing and joining
std::span<const Method> letter_methods();  // of strings: their characters, and fields of a width
std::span<const Method> list_methods();
std::span<const Method> dict_methods();

}  // namespace heed::chat
