// Examples of translation whose every statement is measured: a list of claims becomes a list of
// examples with heads, figures, captions and changed sentences, or an error.
#pragma once

#include "base/json_fwd.h"
#include "base/progress.h"
#include "engine/loaded_translator.h"

namespace heed {

// A claim: the model translates `source` (greedily), and while it writes `word` it attends to
// `attended`, the word of the source that says the same. What holds of every example returned:
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
OrderedJson measure_pair_examples(const LoadedTranslator& model, const Json& claims,
                                  StopFlag stop = nullptr);

// Their JSON for the page: {"id", "title", "source", "target", "layer", "head", "target_word",
// "source_word", "says"}; words are numbers in the lists of a pair's words.
OrderedJson pair_examples_for_page(const Json& measured);

}  // namespace heed
