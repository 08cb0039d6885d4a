// Where one number of a pass comes from: the sum that it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "engine/loaded_model.h"
#include "microscope/kept_attention.h"

namespace heed {

// Which number: of a point, at a position; `index` is its channel, neuron, place in a head or
// token.
struct NumberPlace {
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
  double value = 0;  // what it adds: left · right, and what the formula divides by
};

struct Derivation {
  std::string name;     // "blocks.2.attn.hook_q[6, 3, 17]"
  double value = 0;     // the model's own
  std::string formula;  // in letters of docs/notation.md
  std::string latex;
  std::string operation = "sum";      // or "softmax", "norm", "gelu", "mean"
  std::vector<DerivationTerm> terms;  // all of them
  double bias = 0;

  double sum() const;  // of terms and bias: the value, up to rounding
};

// A pass of a model, and its attention. All borrowed.
struct DerivedPass {
  const LoadedModel& model;
  const KeptPass& pass;
  KeptAttention& attention;
};

// Throws Error{invalid_argument} for a point, layer, head, position or index that is not there.
Derivation derive(const DerivedPass& from, const NumberPlace& place);

// With the `most` terms that are largest by magnitude, and the sum of the others.
OrderedJson derivation_json(Derivation derivation, std::size_t most);

}  // namespace heed
