// The edge of attention to show for a word: of all that heads read there from other words, what
// changes the prediction most when it is cut and when another word is read in its place.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/progress.h"
#include "microscope/attention/text_words.h"
#include "microscope/intervene/edge_runs.h"
#include "model/transformer.h"

namespace heed {

// Effects are total variation distances between two distributions of the next token, ½ Σ |p − p′|:
// 0 changes nothing, 1 everything.
struct EdgeEffect {
  AttentionEdge edge;
  double weight = 0;  // of the word's tokens
  double cut = 0;     // without the edge; the other weights of the row are scaled to keep its sum
  // The part of that which the head itself writes: later layers add what they added before. Nothing
  // where a model's stream is no sum.
  std::optional<double> direct;
  // The mean where the head reads, with the same weight, what it would read from other words that
  // the model finds likely there. Nothing: not measured.
  std::optional<double> replaced;

  // √(cut · replaced): an edge counts where both change the prediction. Cutting alone also breaks
  // what any word would do there, replacing alone also brings in new evidence.
  double score() const;
};

struct TokenChange {
  std::int32_t token = 0;
  double before = 0;  // its probability as the model predicts
  double after = 0;   // and with the edge cut
};

// What is told of a word.
struct ShownEdge {
  std::int64_t query = 0;  // the position
  EdgeEffect effect;

  // The control: the mean effect of cutting another edge of the same head, of all, or of 16 that a
  // fixed seed draws from more. Nothing where the head reads nothing else.
  std::optional<double> others_cut;
  std::size_t others = 0;
  // An edge decides that changes three times as much, and a third of the probability, and without
  // which the likeliest token has half of its own at most.
  double threshold = 0;
  bool decides() const {
    return effect.cut >= threshold && likeliest.after <= likeliest.before / 2;
  }
  // With the edges of every head to this word cut.
  double word_cut = 0;

  TokenChange likeliest;            // the likeliest token
  TokenChange likeliest_without;    // the likeliest one with the edge cut
  std::vector<TokenChange> gained;  // those that gain most with the edge cut, the most first
  std::size_t measured = 0;         // edges that were cut for this
  std::int64_t positions_read = 0;  // the work: see EdgeRuns
};

std::vector<TokenRun> token_runs(std::span<const TextWord> words);
std::vector<TokenRun> single_tokens(std::int64_t count);

struct EdgeQuestion {
  TokenRun word;  // its last token reads
  // The words of the text, or its tokens: an edge goes to all tokens of one. Those before the word
  // count.
  std::vector<TokenRun> keys;
  // Edges to one of them alone, and with a weight of at least this much.
  std::optional<TokenRun> only{};
  double min_weight = 0;
};

// Nothing where there is no such edge, as for the first word of a text.
//
// Of the edges that decide, and change a third when they read other words, the one with the largest
// score is shown. Where none does, many share
// the work: then it is the edge with the largest direct effect. A cut in an early head changes a
// little of all that later heads read, and by the sum of that it would be first for most texts.
//
// The work does not grow with the number of edges: 128 of them are cut, as many of each layer,
// those whose cut changes most of what the head mixes; of these, the 12 with the largest effects
// read three other words each. Ties go to the first. In a model whose passes are edited, edges rank
// by their cut alone. Throws what EdgeRuns throws, and Error{invalid_argument} for a word outside
// the text.
std::optional<ShownEdge> edge_to_show(const Transformer& model,
                                      std::span<const std::int32_t> tokens,
                                      const EdgeQuestion& question, StopFlag stop = nullptr);

double total_variation(std::span<const double> a, std::span<const double> b);

}  // namespace heed
