// What cross-attention's edges to a word of the source are worth: the probability of each word of a
// translation with the edges to its true source words cut, and with as many others cut.
#pragma once

#include <cstdint>
#include <vector>

#include "base/progress.h"
#include "microscope/attention/alignment.h"
#include "microscope/intervene/intervention.h"

namespace heed {

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
