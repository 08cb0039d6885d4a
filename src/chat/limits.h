// What one rendering may use.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heed::chat {

struct RenderLimits {
  std::int64_t steps = 4'000'000;       // expressions, statements and elements of lists
  std::int64_t text_bytes = 256 << 20;  // of all strings that are made, kept or not
  std::size_t output_bytes = 16 << 20;  // of the rendered text, and of any one string
  int depth = 400;                      // nested expressions, statements and macros being evaluated
};

// Limits of a template itself.
constexpr std::size_t largest_template = 1 << 20;  // bytes
constexpr int deepest_syntax = 100;                // nested expressions or statements
constexpr int deepest_value = 100;                 // lists in lists
constexpr int most_links =
    1000;  // operators, attributes and calls in one tag; they nest to the left

}  // namespace heed::chat
