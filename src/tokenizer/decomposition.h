// Canonical decomposition of characters (Unicode's form D), by utf8proc.
#pragma once

#include <utf8proc.h>

#include <vector>

namespace heed {

// The canonical combining class of a character; 0: it begins a sequence of marks.
int combining_class(utf8proc_int32_t point);

void append_decomposition(char32_t code_point, std::vector<utf8proc_int32_t>& points);

// The marks after each character in the order of their classes, which utf8proc sorts in quadratic
// time.
void sort_marks(std::vector<utf8proc_int32_t>& points);

}  // namespace heed
