#include "tokenizer/decomposition.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace heed {

int combining_class(utf8proc_int32_t point) {
  return utf8proc_get_property(point)->combining_class;
}

void append_decomposition(char32_t code_point, std::vector<utf8proc_int32_t>& points) {
  utf8proc_int32_t parts[32];  // the longest has 4
  int boundary = 0;
  const utf8proc_ssize_t count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), parts, std::size(parts),
                              UTF8PROC_DECOMPOSE, &boundary);
  check(count > 0 && count <= std::ssize(parts), "a character has a short decomposition");
  points.insert(points.end(), parts, parts + count);
}

void sort_marks(std::vector<utf8proc_int32_t>& points) {
  const auto is_starter = [](utf8proc_int32_t point) { return combining_class(point) == 0; };
  for (auto begin = points.begin(); begin != points.end();) {
    begin = std::find_if_not(begin, points.end(), is_starter);
    const auto end = std::find_if(begin, points.end(), is_starter);
    std::stable_sort(begin, end, [](utf8proc_int32_t left, utf8proc_int32_t right) {
      return combining_class(left) < combining_class(right);
    });
    begin = end;
  }
}

}  // namespace heed
