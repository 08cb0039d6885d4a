// The derivation of one number of a pass: its formula and the terms of its sum.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "engine/loaded_model.h"
#include "microscope/attention/recorded_attention.h"

namespace heed {

// One number of a point: its position and its index, which is a channel, neuron, element of a
// head or token.
struct PointElement {
  std::string point;  // "q", "blocks.2.attn.hook_q", "result", "logits"
  std::int64_t layer = -1;
  std::int64_t head = 0;
  std::int64_t position = 0;
  std::int64_t index = 0;
  std::int64_t key = 0;  // of scores and pattern
};

struct DerivationTerm {
  std::string label;
  double left = 0;
  double right = 1;
  double value = 0;  // its contribution: left · right, divided as in the formula
};

struct Derivation {
  std::string name;     // "blocks.2.attn.hook_q[6, 3, 17]"
  double value = 0;     // of the model
  std::string formula;  // in the notation of docs/notation.md
  std::string latex;
  std::string operation = "sum";      // or "softmax", "norm", "activation", "mean"
  std::vector<DerivationTerm> terms;  // all of them
  double bias = 0;

  double sum() const;  // of terms and bias; equals the value up to rounding
};

// A recorded pass of a model, and its attention. All borrowed.
struct DerivedPass {
  const LoadedModel& model;
  const RecordedPass& pass;
  RecordedAttention& attention;
};

// Throws Error{invalid_argument} for a point, layer, head, position or index that does not exist.
Derivation derive(const DerivedPass& from, const PointElement& element);

// With the `max_terms` of largest magnitude, and the sum of the others.
OrderedJson derivation_json(Derivation derivation, std::size_t max_terms);

}  // namespace heed
