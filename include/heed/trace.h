// Traces: activations and gradients of a forward pass as named arrays, within a memory budget.
//
//   heed::TraceRequest request{.points = {"blocks.*.hook_resid_pre", "pattern5"}};
//   heed::Trace trace = model.trace(tokens, request);
//   for (const heed::TracedArray& array : trace.arrays) { ... }
//
// Names and shapes are those of TransformerLens; docs/notation.md lists them. Notation: B batch
// (here 1), T positions, S memory, C channels, H query heads, G key/value heads, D head size, F
// neurons.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/array.h"
#include "heed/error.h"

namespace heed {

struct TraceRequest {
  // Names, globs of names ("blocks.*.attn.hook_q") or short names ("q", "resid_pre3"). The suffix
  // "_grad" selects the gradient at that point.
  std::vector<std::string> points{};
  std::vector<std::int64_t> layers{};  // empty: all
  // Of queries; empty: all. Of keys and values, those that these heads share.
  std::vector<std::int64_t> heads{};
  // Empty: all; −1 is the last. Of pattern and scores: queries. Of two texts: of the target.
  std::vector<std::int64_t> positions{};
  // Of the source: of the points of an encoder, and of keys and values that a decoder attends to.
  std::vector<std::int64_t> source_positions{};
  std::int64_t budget = std::int64_t{1} << 30;  // maximum size of the trace, in bytes
};

struct TracedArray {
  std::string name;
  std::vector<std::int64_t> shape;  // (B, T, …); pattern and scores (B, H, T, S)
  Array values;                     // of this shape; row by row, the last dimension fastest
};

struct Trace {
  std::vector<TracedArray> arrays;   // in the order of a forward pass, gradients last
  std::vector<std::int32_t> tokens;  // of the text, including generated ones

  // Look up by full name ("blocks.5.hook_resid_pre"). Results point into this trace.
  const TracedArray* find(std::string_view name) const;  // null if it was not traced
  const TracedArray& at(std::string_view name) const;    // throws Error{not_found}
};

// The differentiated quantity: a weighted sum of logits, such as those of two answers with weights
// 1 and −1, and of values at points; if nothing is weighted, the mean next-token loss.
struct GradientTarget {
  struct Logit {
    std::int64_t position = 0;  // whose next-token logits are used; −1 is the last
    std::int32_t token = 0;
    double weight = 1;
  };
  std::vector<Logit> logits{};
  // Or of all logits, (B, T, V): what is after the end of a shorter text is not read.
  Array logit_weights{};
  // Of the values at points, each of its shape: what is differentiated is the sum of value times
  // weight. Not at embeddings, norms, scores, patterns, and results of heads.
  struct PointWeights {
    std::string point;
    Array weights;
  };
  std::vector<PointWeights> points{};

  bool is_loss() const { return logits.empty() && logit_weights.empty() && points.empty(); }
};

}  // namespace heed
