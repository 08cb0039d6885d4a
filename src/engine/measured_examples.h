// Examples of attention whose every statement is measured: a list of claims becomes a list of
// examples with heads, figures, captions and interventions, or an error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/progress.h"
#include "engine/loaded_model.h"

namespace heed {

// A claim: the next token after the text is `answer` because of the word `attended`, to which a
// head attends from `word` (an example's word). What holds of every example returned:
// - The head gives the attended word at least one and a half times an even share. Of the heads that
//   do, its edge to the word is the one that edge_to_show() chooses; where cutting it alone does
//   not halve the probability of the answer, the caption says that no single edge decides.
// - Cutting that edge, or replacing words by others as the claim says, at least halves the
//   probability of the answer; the caption says which token takes its place.
// - The attended word is evidence: the claim replaces it, or the edges to it, of that head or of
//   all, carry half of the probability.
// - Where the claim says "depth", the logit lens has another token after the first block, and the
//   answer after the last.
//
//   [{"id", "title", "text", "word", "about",
//     "claims": [{"attended", "occurrence", "answer", "depth",
//                 "replace": {"word", "occurrence", "by"} or a list of them}]}]
//
// Without claims, "about" is the note and the example names no head; it needs no "word".
//
// A claim of a translator: it translates `source` (greedily), and while it writes `word` it attends
// to `attended`, the word of the source that says the same. What holds of every example returned:
// - The translation is one that the microworld's grammar makes of the source, and by the true
//   alignment `word` and `attended` belong together.
// - A head of cross-attention gives the attended word more than half of its weight, and more than
//   three times an even share: the mean over the positions that write the word. Of these heads it
//   is the one that gives most.
// - At least one change takes the word away. Where the edges of every head from the positions that
//   write it to the attended word are cut, its probability falls to a half at most, and further
//   than with the edges to any other word of the source cut. Where another word stands in the
//   source ("replace"), the translation has `becomes` in its place.
//
//   [{"id", "title", "source", "word", "occurrence", "attended", "attended_occurrence", "about",
//     "replace": {"word", "occurrence", "by", "becomes"}}]
//
// An occurrence counts from 1; 0 or absent: the last. Throws Error{corrupt_data} for another form,
// and Error{not_found} for the first claim that the model does not carry.
OrderedJson measure_examples(const LoadedModel& model, const Json& claims, StopFlag stop = nullptr);

// Their JSON for the page: positions and links of interventions are those of the model's tokens; of
// a translator, words are numbers in the lists of both texts' words.
OrderedJson examples_for_page(const LoadedModel& model, const Json& measured);

// What examples of one text and of two share: members of claims, and how captions are worded.
namespace examples {

// One example of a translator, and its JSON for the page.
OrderedJson measured_translation(const LoadedModel& translator, const Json& claim, StopFlag stop);
OrderedJson translation_for_page(const Json& measured);

// A text that an example must have. Throws Error{corrupt_data}.
std::string text_in(const Json& object, const char* key);
// Which occurrence of a word is meant, from 1; 0, the last, where nothing is said.
std::int64_t occurrence_in(const Json& object, const char* key = "occurrence");

// "96 %", "8.9 %", "99.8 %", "less than 0.1 %".
std::string percentage(double share);
// “word”, without the spaces before it.
std::string quoted(std::string_view text);
// "a", "a and b", "a, b and c".
std::string listed(const std::vector<std::string>& items);
// To the precision of committed figures.
double rounded(double value);

}  // namespace examples
}  // namespace heed
