// A pass of an encoder-decoder over one pair of texts, in which every attention can be read later
// and which any probe can observe again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "microscope/attention/lazy_attention.h"
#include "model/transformer.h"
#include "tensor/tensor.h"

namespace heed {

// At least one token on each side, and as many as the contexts hold. Throws
// Error{invalid_argument}.
void require_pair_fits(const Architecture& architecture, const Texts& tokens);

// Whether the rows of a point are positions of the source: of the encoder, and keys and values of
// cross-attention.
bool has_source_rows(const Point& point);

// Runs the model on one pair, edited by `editor` and observed by `probe`, either null. Returns the
// decoder's activations; `encoded` (M, C), if present, gets the encoder's end.
StackActivations run_pair(const Transformer& model, const Texts& tokens, Editor* editor,
                          Probe* probe, View<float> encoded = {});

class PairPass {
 public:
  // Borrows the model. Throws what require_pair_fits throws.
  PairPass(const Transformer& model, Texts tokens, std::shared_ptr<Editor> editor = {});
  PairPass(const PairPass&) = delete;
  PairPass& operator=(const PairPass&) = delete;

  static std::int64_t bytes_needed(const Architecture& architecture, std::int64_t sources,
                                   std::int64_t targets);

  const Transformer& model() const { return model_; }
  const Architecture& architecture() const { return model_.architecture(); }
  const Texts& tokens() const { return tokens_; }
  std::int64_t sources() const { return std::ssize(tokens_.source); }  // M
  std::int64_t targets() const { return std::ssize(tokens_.target); }  // T
  const std::shared_ptr<Editor>& editor() const { return editor_; }

  View<const float> encoded() const { return encoded_; }  // (M, C): the encoder's end
  View<const float> decoded() const { return decoded_; }  // (T, C): what the unembedding reads

  // Attention without edits of its scores or patterns; see PairAttention for those.
  const LazyAttention& attention(AttentionSite kind) const;
  std::int64_t queries(AttentionSite kind) const {
    return kind == encoder_site ? sources() : targets();
  }
  std::int64_t keys(AttentionSite kind) const {
    return kind == decoder_site ? targets() : sources();
  }

  // Whether an edit changes the scores or the pattern of a head.
  bool edits_pattern(AttentionSite kind, std::int64_t layer, std::int64_t head) const;

  // Runs the pass again for a probe of any points: to the same bits.
  void replay(Probe& probe) const;

  // Logits (end − begin, V) at positions [begin, end) of the target.
  Tensor<float> logits(std::int64_t begin, std::int64_t end) const;
  // Of every token after position t of the target, (V).
  std::vector<double> next_probabilities(std::int64_t position) const;

 private:
  const Transformer& model_;
  Texts tokens_;
  std::shared_ptr<Editor> editor_;
  std::vector<LazyAttention> attention_;  // as sites_of()
  Tensor<float> encoded_;
  Tensor<float> decoded_;
};

// softmax of a row of logits, in double.
std::vector<double> probabilities_of(std::span<const float> logits);

}  // namespace heed
