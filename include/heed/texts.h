// What a model reads.
#pragma once

#include <cstdint>
#include <vector>

namespace heed {

// The tokens of one text, or of a source and a target.
struct Texts {
  std::vector<std::int32_t> source;  // of an encoder-decoder; empty: the model has one stack
  // As the decoder reads it: its start first. Position t has read tokens 0 to t and writes token
  // t + 1, the last position the end.
  std::vector<std::int32_t> target;

  bool operator==(const Texts&) const = default;
};

}  // namespace heed
