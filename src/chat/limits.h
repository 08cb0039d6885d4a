// What one rendering may use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/progress.h"

namespace heed::chat {

struct RenderLimits {
  std::int64_t steps = 4'000'000;  // expressions, statements, elements of lists, and bytes read
  std::int64_t text_bytes = 256 << 20;  // of all strings that are made, kept or not
  std::size_t output_bytes = 16 << 20;  // of the rendered text, and of any one string
  int depth = 400;                      // nested expressions, statements and macros being evaluated
  StopFlag stop = nullptr;              // looked at in every step: throws Error{interrupted}
};

// Bytes of text that an operation reads or writes in one step. No operation takes more than linear
// time, so that steps bound the time of a rendering whatever its template and its messages are.
constexpr std::size_t bytes_of_a_step = 256;

// Limits of a template itself.
constexpr std::size_t largest_template = 1 << 20;  // bytes
constexpr int deepest_syntax = 100;                // nested expressions or statements
constexpr std::size_t longest_date_format = 1024;  // bytes, of strftime_now()
constexpr int deepest_value = 100;                 // lists in lists
constexpr int most_links =
    1000;  // operators, attributes and calls in one tag; they nest to the left

}  // namespace heed::chat
