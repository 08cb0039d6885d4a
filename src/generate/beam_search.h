// Search for the likeliest outputs of an encoder-decoder: greedy, or with several hypotheses a
// source (beam search).
#pragma once

#include <cstdint>
#include <vector>

#include "base/progress.h"
#include "model/cache.h"
#include "model/editor.h"
#include "model/transformer.h"

namespace heed {

// What a beam search of one source looked at: every candidate of every step, as a tree.
enum class BeamFate {
  kept,      // went on to the next step, or was cut off at the maximum length as a hypothesis
  dropped,   // did not: others were likelier, or the search was over
  finished,  // ended its hypothesis with the end token
};

struct BeamNode {
  std::int32_t parent = -1;    // the node before; −1: this is the start
  std::int32_t step = 0;       // tokens up to this one; 0: the start
  std::int32_t token = -1;     // −1: the start
  double log_probability = 0;  // of the token after those before it
  double sum = 0;              // of all tokens up to this one
  BeamFate fate = BeamFate::dropped;
};

struct BeamTree {
  // The start, then the candidates of each step, the likeliest first: at most twice the beams.
  std::vector<BeamNode> nodes;
  // The last node of each hypothesis that was found, the best first.
  std::vector<std::int32_t> hypotheses;

  // The tokens from the start to a node.
  std::vector<std::int32_t> tokens_to(std::int32_t node) const;
};

// The defaults, and what the numbers mean, are those of Hugging Face's generate(): a hypothesis is
// finished with an end token, which counts in its length; the token that decoding starts from does
// not. Only an end among the `beams` best continuations of a step counts. A source is done once
// `beams` hypotheses are finished and no continuation of the step, ended or not, has a higher score
// than the worst of them (early stopping off). Padding is never generated. A first token that the
// model forces (Architecture::forced_first) has the log-probability 0, and counts in the length; so
// has a last one (forced_last) at the maximum length.
struct BeamOptions {
  std::int64_t beams = 5;       // hypotheses that go on at each step; 1: greedy search
  double length_penalty = 1.0;  // score = log p / length^length_penalty; 0: the score is log p
  std::int64_t n_best = 1;      // hypotheses returned for each source, at most `beams`
  // Tokens of a hypothesis, its end included. 0: three for each token of the source and 16 more. At
  // most, and without that limit, the context of the decoder.
  std::int64_t max_length = 0;
  // Sources are sorted by length and decoded together while their tokens, times `beams`, are at
  // most these. Speed and memory depend on it, results do not.
  std::int64_t batch_tokens = 4096;
  std::int64_t drawable = 0;  // tokens from this one on are never generated; 0: all may be
  CacheType cache_type = CacheType::f32;
  // Changes the passes of both stacks. There is one source then, and what the decoder attends to in
  // it is projected anew at every step, so that edits of its keys and values apply.
  Editor* editor = nullptr;
  // Receives what the search of each source looked at, in the order of the sources. Results are the
  // same to the bit.
  std::vector<BeamTree>* trees = nullptr;
  StopFlag stop = nullptr;      // checked at every step
  ProgressCallback progress{};  // "translating", in sources

  // Throws Error{invalid_argument} naming the first impossible value.
  void validate(const Architecture& architecture) const;
};

struct TokenHypothesis {
  std::vector<std::int32_t> tokens;  // with the end token, if finished
  double log_probability = 0;        // of the tokens, given the source
  double score = 0;
  bool finished = false;  // false: cut off at the maximum length
};

// The `n_best` hypotheses of each source, the best first, in the order of the sources. A result
// does not depend on the other sources, to the bit. Throws Error{invalid_argument}, naming the
// source by its number from 1, for one without tokens, longer than the encoder's context or with a
// token outside the vocabulary, and for impossible options; Error{unsupported} for a model that
// does not say what its decoder starts from; Error{interrupted} when stopped; Error{diverged} for
// logits that are not numbers.
std::vector<std::vector<TokenHypothesis>> beam_search(const Transformer& model,
                                                      const TokenRows& sources,
                                                      const BeamOptions& options = {});

// The likeliest token at each step: beam search with one hypothesis.
std::vector<TokenHypothesis> greedy_search(const Transformer& model, const TokenRows& sources,
                                           BeamOptions options = {});

}  // namespace heed
