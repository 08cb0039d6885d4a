// Direct logit attribution: what each part of the model adds to a logit by writing to the residual
// stream.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "microscope/explain/logit_direction.h"
#include "microscope/traces/kept_pass.h"
#include "model/gpt.h"

namespace heed {

// How finely the stream is taken apart.
enum class AttributionUnit {
  component,  // embedding, position, each attention and each feed-forward layer
  head,       // attention layers by head
  neuron,     // feed-forward layers by neuron
  source,     // heads by the position that they read from: pattern[t, s] · value[s] · W_O
};

struct AttributionTerm {
  enum class Part {
    embedding,
    position,
    attention,
    head,
    feed_forward,
    neuron,
    edit,  // what an intervention at `point` adds that no other part has
    bias,
    rounding,  // what products in less than f32 lose, where weights are prepared in such a format
  };
  Part part = Part::embedding;
  std::int64_t layer = -1;
  std::int64_t index = -1;   // of the head or the neuron
  std::int64_t source = -1;  // the position that the head reads; −1: all that there are
  double value = 0;          // logits
  Point point{};             // of an edit

  // As TransformerLens labels them: "embed", "pos_embed", "0_attn_out", "L0H1", "0_mlp_out",
  // "L0N17", "bias"; a head's source as "L0H1<4", an edit as "0_resid_mid_edit".
  std::string name() const;
};

struct Attribution {
  LogitQuestion question;
  AttributionUnit unit = AttributionUnit::component;
  std::int64_t position = 0;
  // In the order of the pass; at the end the biases, in one term, and rounding, in another.
  std::vector<AttributionTerm> terms;
  double logit = 0;  // what the model itself says

  double sum() const;  // of the terms: the logit, up to rounding
};

// Of the logit at `position` of a text (−1: the last). The final norm's scale is held at what it
// was, so that the logit is a sum (Elhage et al., A Mathematical Framework for Transformer
// Circuits, 2021; Nanda and Bloom, TransformerLens, 2022). "bias" holds the final norm's and the
// head's bias and those of layers that are taken apart; the bias of a value belongs to its head.
// Sums are made in double. Throws what trace() throws, and Error{invalid_argument} for a token or
// position that is not there.
Attribution attribute_logit(const Gpt& gpt, std::span<const std::int32_t> tokens,
                            const LogitQuestion& question, AttributionUnit unit,
                            std::int64_t position = -1);

// The same of a pass that was kept, with what changed it: values that an intervention made are
// those of their part, and what it adds to the stream, or to a sum of finer parts, is a part of its
// own. A head whose mixed values were changed is one term, for they no longer come from sources.
Attribution attribute_logit(const KeptPass& pass, const LogitQuestion& question,
                            AttributionUnit unit, std::int64_t position = -1);

}  // namespace heed
