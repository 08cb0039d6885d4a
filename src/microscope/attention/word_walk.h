// One position's way through one head, step by step, from the numbers of a real pass: it asks,
// every key answers, the answers become shares, the values are mixed, and the mix is written back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "microscope/traces/capture.h"
#include "model/gpt.h"

namespace heed {

// What one token of the text answers to the query.
struct KeyAnswer {
  std::int64_t position = 0;
  bool masked = false;             // it comes later: the query may not see it
  std::vector<float> key;          // (D)
  std::vector<float> value;        // (D)
  double product = 0;              // query · key
  double scaled = 0;               // product / √D
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
  std::vector<float> query;            // (D)
  std::vector<KeyAnswer> answers;      // one for each token of the text
  std::vector<float> output;           // (D): Σ share · value
  std::vector<float> concatenation;    // (H·D): the outputs of all heads; this one's begins at
                                       // head · D
  std::vector<float> head_projection;  // (C): what this head alone adds to the stream
  std::vector<float> attention_out;    // (C): what all heads and the bias add
  std::vector<float> residual_before;  // (C): the stream before attention
  std::vector<float> residual_after;   // (C): after it
};

// The points that a walk through `layer` reads.
std::vector<Site> word_walk_sites(std::int64_t layer);

// `capture` holds those points of a pass over one sequence (B = 1). `shares` (T) are those of the
// pattern's row where an intervention changed it; none: softmax of the scores.
WordWalk walk_word(const Gpt& gpt, const Capture& capture, std::int64_t layer, std::int64_t head,
                   std::int64_t position, std::span<const float> shares = {});

double length(const std::vector<float>& vector);  // Euclidean

}  // namespace heed
