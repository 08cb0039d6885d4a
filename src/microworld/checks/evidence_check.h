// Which heads carry the evidence that decides a word, measured over many variants of a sentence.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/progress.h"
#include "microscope/intervene/answer_probability.h"
#include "model/transformer.h"
#include "tokenizer/tokenizer.h"

namespace heed {

// One of the words that decide, and the head that attends to it most.
struct EvidenceWeight {
  HeadName head;
  double share = 0;       // mean attention from the word's last token to this evidence
  double even_share = 0;  // what uniform attention would give it
  double prominent = 0;   // share of variants in which at most one other token gets more
};

// A subject (microworld::EvidenceMark) and its variants. Heads are chosen on other variants than
// those that all figures are means over, so that a choice among many heads does not flatter them.
struct EvidenceCheck {
  std::string subject;
  std::int64_t variants = 0;
  std::vector<EvidenceWeight> weights;  // one for each word of evidence

  // The probability of the answer's first token: unchanged; without `heads` (their mixed values
  // are zero), which were added one by one until it fell below a half of what it was, or no head
  // lowered it further; without as many other heads; with all edges from the evidence cut, for
  // every later query in every head; and with the evidence of another variant, after which another
  // answer is right, in its place: of another reading of the same word where there is one
  // (bank/money for bank/river).
  std::vector<HeadName> heads;
  double probability = 0;
  double without_heads = 0;
  double without_others = 0;
  double without_edges = 0;
  double replaced = 0;
  // What takes its place then: the first token of the answer that is right after that evidence,
  // as it is and with the evidence replaced.
  double other_answer = 0;
  double other_answer_replaced = 0;
  // The control: with the evidence of another variant of the subject in its place after which the
  // same answer is right. Over the variants that have such a one, and only as many of them; NaN
  // without any.
  std::int64_t controls = 0;
  double control_replaced = 0;
  // With all edges cut from the evidence to what stands before it; as a control, with all edges cut
  // from as many tokens directly before it. Where only the first lowers the answer, the model takes
  // two hops: the evidence reads what it belongs to, and the word finds it by that.
  double isolated = 0;
  double others_isolated = 0;

  // For each layer's residual stream, before the first block and after each: the share of variants
  // in which the logit lens has the answer's first token as the most likely.
  std::vector<double> right_by_depth;
};

struct EvidenceCheckOptions {
  std::int64_t variants = 200;        // measured
  std::int64_t choosing = 24;         // on which heads are chosen
  std::size_t max_heads = 4;          // switched off together
  std::vector<std::string> subjects;  // empty: all
  std::uint64_t seed = 0;             // of the stories; use another seed than for training
  ProgressCallback progress;
  StopFlag stop = nullptr;
};

// One entry for each subject, in alphabetical order. Throws Error{invalid_argument} for fewer than
// one variant, Error{not_found} for a subject that stories do not have, Error{interrupted} on
// request.
std::vector<EvidenceCheck> check_evidence(const Transformer& model, const Tokenizer& tokenizer,
                                          const EvidenceCheckOptions& options);

}  // namespace heed
