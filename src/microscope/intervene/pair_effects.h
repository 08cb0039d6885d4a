// What changes in an encoder-decoder: by interventions, in the next token and in the translation;
// by another word, in the vectors of both texts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/progress.h"
#include "microscope/attention/alignment.h"
#include "microscope/intervene/intervention.h"
#include "microscope/traces/recorded_pass.h"

namespace heed {

// The greedy translation of a source: the most likely token each time.
struct GreedyTranslation {
  std::vector<std::int32_t> tokens;   // without the decoder's start and without the end
  std::optional<std::int32_t> end{};  // nothing: it was cut off
  double log_probability = 0;         // of the tokens, and of the end where there is one

  bool is_finished() const { return end.has_value(); }
};
struct GreedyOptions {
  std::int64_t max_length = 0;  // tokens; 0: as many as the context holds
  Editor* editor = nullptr;     // edits both stacks at every step; or null
  Probe* probe = nullptr;       // observes them
  StopFlag stop = nullptr;
};
// Throws Error{invalid_argument} for a source that does not fit the encoder, and Error{interrupted}
// when stopped.
GreedyTranslation translate_greedily(const Transformer& model, std::span<const std::int32_t> source,
                                     const GreedyOptions& options = {});

// The target of a translation as the decoder reads it: its start, then the tokens.
std::vector<std::int32_t> decoder_input(const Architecture& architecture,
                                        std::span<const std::int32_t> tokens);

// What an edited pass changes after one position, against the same texts without edits.
struct PredictionEffect {
  // Total variation distance of the distributions of the next token, ½ Σ |p − p′|: 0 changes
  // nothing, 1 everything.
  double moved = 0;
  std::optional<std::int32_t> next;  // the token that follows in the text, if any
  double before = 0;                 // its probability
  double after = 0;
};
// At every position of the text, or of the target, which both have. Throws Error{interrupted} when
// stopped.
std::vector<PredictionEffect> prediction_effects(const RecordedPass& unedited,
                                                 const RecordedPass& edited,
                                                 StopFlag stop = nullptr);

// How far each vector at the end of a stack moves when one token becomes another: ‖after − before‖
// / ‖before‖; exactly 0 where not a bit changes. Without a mask, a token moves all vectors of its
// text, also those before it; with a causal mask, none before it.
struct TokenInfluence {
  std::vector<double> encoder;  // (M)
  std::vector<double> decoder;  // (T)
};
TokenInfluence token_influence(const RecordedPass& pass, PairSide side, std::int64_t position,
                               std::int32_t token);

// What cross-attention's edges to a word of the source are worth: the probability of each word of a
// translation with the edges to its true source words cut, and with as many others cut.

// The edges of cross-attention from the positions that write a word to tokens of the source.
std::vector<CutEdges::Edge> writing_edges(const TextWord& target_word,
                                          const std::vector<std::int64_t>& source_tokens);

// Of the tokens of a word of the target, given those before them; the word is not the target's
// start.
struct WordProbability {
  double log = 0;
  bool is_likeliest = false;  // each of its tokens is the most likely one
  std::int32_t first = 0;     // the likeliest token where the word begins,
  double first_probability = 0;
};
WordProbability written_word(const RecordedPass& pass, const TextWord& word);
// The same with the writing edges to these tokens cut in every head of every layer; the rest of a
// row keeps its sum.
WordProbability written_without(const RecordedPass& pass, const TextWord& word,
                                const std::vector<std::int64_t>& source_tokens);

struct WordCut {
  std::int64_t target = 0;     // a word
  std::int64_t edges = 0;      // of each position that writes it; cut in every head of every layer
  double before = 0;           // log probability of the word's tokens, given those before them
  double without_true = 0;     // with the edges to its true source words cut
  double without_others = 0;   // with as many edges to other tokens cut, drawn at random
  bool is_written = false;     // each of its tokens is the most likely one, with no edge cut
  bool survives_true = false;  // and still is with the true edges cut
  bool survives_others = false;
};

// Of every word of the target that the truth links and that leaves as many other tokens to cut
// (`last_tokens` of the source, its end, never count as others). The rest of a row keeps its sum.
// Takes two passes a word. Throws Error{interrupted} when stopped.
struct AlignmentCutOptions {
  std::uint64_t seed = 1;
  std::int64_t last_tokens = 1;
  StopFlag stop = nullptr;
};
std::vector<WordCut> cut_alignments(const RecordedPass& pass, const PairWords& words,
                                    const scoring::TrueAlignment& truth,
                                    const AlignmentCutOptions& options = {});

}  // namespace heed
