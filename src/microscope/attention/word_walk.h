// The computation of one head at one position, step by step, with the numbers of a forward pass:
// query, scores against every key, softmax, weighted sum of values, output projection, residual.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "microscope/attention/recorded_attention.h"
#include "microscope/traces/capture.h"
#include "model/transformer.h"

namespace heed {

// One key: its score, and what its value contributes.
struct KeyAnswer {
  std::int64_t position = 0;
  bool masked = false;             // after the query's position, or before its window
  std::vector<float> key;          // (D), as attention reads it: rotated where positions are rotary
  std::vector<float> value;        // (D)
  double product = 0;              // query · key
  double scaled = 0;               // the score: product · scale, usually 1/√D, capped if at all
  double share = 0;                // softmax of the scaled scores that are not masked
  double value_length = 0;         // ‖value‖
  double contribution_length = 0;  // ‖share · value‖
};

struct WordWalk {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  std::int64_t position = 0;  // of the query
  std::int64_t head_size = 0;
  std::int64_t heads = 0;
  std::vector<float> query;            // (D), as attention reads it
  std::vector<KeyAnswer> answers;      // one for each token of the text
  std::vector<float> output;           // (D): Σ share · value
  std::vector<float> concatenation;    // (H·D): the outputs of all heads; this one's begins at
                                       // head · D
  std::vector<float> head_projection;  // (C): what this head alone adds to the stream
  std::vector<float> attention_out;    // (C): what all heads and the bias add
  std::vector<float> residual_before;  // (C): the stream before attention
  // (C): after it; where the residual is parallel, without what feed-forward adds beside it.
  std::vector<float> residual_after;
};

// The points that a walk through `layer` needs.
std::vector<Point> word_walk_points(const StackSpecification& config, std::int64_t layer);

// `capture` holds those points for one sequence (B = 1). `shares` (T) is the row of the pattern if
// an intervention changed it; empty: softmax of the scores.
WordWalk walk_word(const Transformer& model, const Capture& capture, std::int64_t layer,
                   std::int64_t head, std::int64_t position, std::span<const float> shares = {});

// The same in a recorded pass over one text, as its interventions left it.
WordWalk walk_word(const RecordedPass& pass, RecordedAttention& attention, std::int64_t layer,
                   std::int64_t head, std::int64_t position);

double length(const std::vector<float>& vector);  // Euclidean

}  // namespace heed
