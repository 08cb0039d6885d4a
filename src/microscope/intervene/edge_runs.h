// The last position of a text, read again and again with something changed: what a head mixes
// there, an edge that is cut, another word before it. What stands before it is read once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/progress.h"
#include "microscope/intervene/answer_probability.h"
#include "model/cache.h"
#include "model/transformer.h"

namespace heed {

// Tokens [begin, end) of a text: a word, or one token.
struct TokenRun {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t count() const { return end - begin; }
  friend bool operator==(const TokenRun&, const TokenRun&) = default;
};

// What a head reads at the last position from a word.
struct AttentionEdge {
  HeadName head;
  TokenRun key;

  friend bool operator==(const AttentionEdge&, const AttentionEdge&) = default;
};

class EdgeRuns {
 public:
  // Reads the tokens, one pass. Borrows the model. Throws Error{unsupported} for a model that
  // predicts no next token and Error{invalid_argument} for a text that does not fit; every reading
  // throws Error{interrupted} once it is to stop.
  EdgeRuns(const Transformer& model, std::span<const std::int32_t> tokens, StopFlag stop);

  std::int64_t query() const { return std::ssize(tokens_) - 1; }
  // (V), of the next token, with nothing changed.
  const std::vector<double>& probabilities() const { return probabilities_; }
  // On all tokens of the word.
  double weight(const AttentionEdge& edge) const {
    return rows_.weight(edge.head, edge.key.begin, edge.key.end);
  }

  // What a head mixes at the query, D numbers: without the edge, the other weights scaled to sum to
  // one (zeros where there are none); and with its weights on other values, (tokens, G, D).
  std::vector<float> mixed_without(const AttentionEdge& edge) const;
  std::vector<float> mixed_with(const AttentionEdge& edge, View<const float> values) const;
  // ‖mixed without the edge − mixed‖ of each of a head's edges: says nothing of the prediction, and
  // takes no reading.
  std::vector<double> changes_by_cut(const HeadName& head, std::span<const TokenRun> keys) const;

  // Heads that mix other numbers at the query, one a reading.
  struct HeadChange {
    HeadName head;
    std::vector<float> mixed;
  };
  // (changes, V): the probabilities of the next token with each change alone. In a model whose
  // passes are edited, the change is what the edits get.
  std::vector<std::vector<double>> read(std::span<const HeadChange> changes);
  // The same of the direct effect: the change reaches the prediction by the stream alone, and every
  // later layer adds what it added before. Empty where the stream is no sum, or passes are edited.
  std::vector<std::vector<double>> read_directly(std::span<const HeadChange> changes);
  // With each edge cut alone.
  std::vector<std::vector<double>> read_without(std::span<const AttentionEdge> edges);
  // With the edges of every head to a word cut.
  std::vector<double> read_without_word(const TokenRun& word);

  // A word in the place of another, of as many tokens, and what heads read from it.
  struct OtherWord {
    std::vector<std::int32_t> tokens;
    std::vector<Tensor<float>> values;  // of each layer, (tokens, G, D)
  };
  // Up to `most` words: each begins with one of the tokens that the model finds likeliest there,
  // but for the word's own, and goes on as it finds likeliest. Nothing can be likely at the text's
  // beginning: there, words begin with tokens `others` of the text.
  std::vector<OtherWord> other_words(const TokenRun& word, std::span<const std::int32_t> others,
                                     std::size_t most);

  // Positions that were computed so far, in all layers or from the change on.
  std::int64_t positions_read() const { return positions_read_; }

 private:
  void require_running() const;
  void feed(std::span<const std::int32_t> tokens, Editor* editor, Probe* probe,
            const StackActivations& activations);
  std::vector<double> read_last(Editor* editor);
  std::vector<std::vector<double>> read_rows(std::span<const HeadChange> changes);
  using ByLayer = std::vector<std::vector<const HeadChange*>>;
  ByLayer by_layer(std::span<const HeadChange> changes) const;
  Tensor<float> attention_with(std::span<const HeadChange* const> changes) const;
  std::vector<std::vector<double>> in_order(std::span<const HeadChange> changes,
                                            const ByLayer& groups,
                                            const Tensor<float>& logits) const;
  void cache_up_to(std::int64_t length);
  View<const float> value(std::int64_t layer, std::int64_t head, std::int64_t position) const;
  std::int64_t head_size() const { return model_.specification().block.attention.head_size; }

  const Transformer& model_;
  std::vector<std::int32_t> tokens_;
  StopFlag stop_;
  bool by_rows_;                  // changes share passes: see model/variants.h
  KeyValueCache cache_;           // of the text's beginning, or of one with another word
  StackActivations activations_;  // of the text
  StackActivations step_;
  QueryRows rows_;
  std::vector<Tensor<float>> values_;  // of each layer, (T, G, D)
  std::vector<double> probabilities_;
  std::int64_t positions_read_ = 0;
};

}  // namespace heed
