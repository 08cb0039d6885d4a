// Direct logit attribution: the contribution of each part of the model to a logit, by what it
// writes to the residual stream.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "microscope/explain/logit_direction.h"
#include "microscope/traces/recorded_pass.h"
#include "model/transformer.h"

namespace heed {

// The granularity of the decomposition.
enum class AttributionUnit {
  component,  // embeddings, and each attention and feed-forward layer
  head,       // attention layers split by head
  neuron,     // feed-forward layers split by neuron
  source,     // heads split by key position: pattern[t, s] · value[s] · W_O
};

struct AttributionTerm {
  enum class Part {
    embedding,
    position,
    attention,
    head,
    feed_forward,
    neuron,
    edit,  // what an intervention at `point` adds beyond the other parts
    bias,
    rounding,  // rounding of products with quantised weights
  };
  Part part = Part::embedding;
  std::int64_t layer = -1;
  std::int64_t index = -1;   // of the head or the neuron
  std::int64_t source = -1;  // the key position; −1: all
  double value = 0;          // logits
  PointKind point{};         // of an edit

  // As TransformerLens labels them: "embed", "pos_embed", "0_attn_out", "L0H1", "0_mlp_out",
  // "L0N17", "bias"; a head's source as "L0H1<4", an edit as "0_resid_mid_edit".
  std::string name() const;
};

struct Attribution {
  LogitQuestion question;
  AttributionUnit unit = AttributionUnit::component;
  std::int64_t position = 0;
  // In the order of the pass, then one term for the biases and one for rounding.
  std::vector<AttributionTerm> terms;
  double logit = 0;  // the model's logit

  double sum() const;  // of the terms; equals the logit up to rounding
};

// Attributes the logit at `position` of a text (−1: the last). The final norm's scale is held
// constant, so that the logit is a sum (Elhage et al., A Mathematical Framework for Transformer
// Circuits, 2021; Nanda and Bloom, TransformerLens, 2022). "bias" is the sum of the biases of the
// final norm, the unembedding and the layers that are split; value biases belong to their heads.
// Sums are accumulated in double. Throws what trace() throws, and Error{invalid_argument} for a
// token or position that does not exist.
Attribution attribute_logit(const Transformer& model, std::span<const std::int32_t> tokens,
                            const LogitQuestion& question, AttributionUnit unit,
                            std::int64_t position = -1);

// The same for a recorded pass with its interventions: a value that an intervention sets belongs to
// its part; what it adds to the stream, or to a sum of finer parts, is a term of its own. A head
// with edited mixed values is one term, because they no longer derive from source positions.
Attribution attribute_logit(const RecordedPass& pass, const LogitQuestion& question,
                            AttributionUnit unit, std::int64_t position = -1);

}  // namespace heed
