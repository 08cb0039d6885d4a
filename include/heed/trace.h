// Seeing inside a model: any points of a pass as named arrays, a part of them, within a budget.
//
//   heed::TraceRequest request{.points = {"blocks.*.hook_resid_pre", "pattern5"}};
//   heed::Trace trace = model.trace(tokens, request);
//   for (const heed::TracedArray& array : trace.arrays) { ... }
//
// Names and shapes are those of TransformerLens; docs/notation.md lists them. Letters: B batch
// (here 1), T positions, S memory, C channels, H heads, D head size, F neurons.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/error.h"

namespace heed {

struct TraceRequest {
  // Names, globs of names ("blocks.*.attn.hook_q") or short names ("q", "resid_pre3"). With "_grad"
  // behind it, a name stands for the gradient at that point.
  std::vector<std::string> points{};
  std::vector<std::int64_t> layers{};  // none: all
  std::vector<std::int64_t> heads{};   // none: all
  std::vector<std::int64_t>
      positions{};  // none: all; −1 is the last. Of pattern and scores: queries
  std::int64_t budget = std::int64_t{1} << 30;  // bytes that the trace may take
};

struct TracedArray {
  std::string name;
  std::vector<std::int64_t> shape;  // (B, T, …), of pattern and scores (B, H, T, S)
  std::vector<float> values;        // row by row, the last dimension fastest
};

struct Trace {
  std::vector<TracedArray> arrays;   // in the order of a pass, gradients last
  std::vector<std::int32_t> tokens;  // that were read, sequence by sequence; generated ones too

  // By the full name ("blocks.5.hook_resid_pre"). Both point into this trace.
  const TracedArray* find(std::string_view name) const;  // null where it was not traced
  const TracedArray& at(std::string_view name) const;    // throws Error{not_found}
};

// What gradients are taken of: a sum of logits, such as those of two answers with weights 1 and −1,
// or, where there are none, the mean loss of predicting each token from those before it.
struct GradientTarget {
  struct Logit {
    std::int64_t position = 0;  // of what is read: the logits of what follows; −1 is the last
    std::int32_t token = 0;
    double weight = 1;
  };
  std::vector<Logit> logits{};
};

}  // namespace heed
