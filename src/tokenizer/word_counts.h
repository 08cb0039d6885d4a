// Word counts of a corpus: the first step of training a byte-pair tokenizer.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "tokenizer/added_token_matcher.h"

namespace heed {

struct WordCount {
  std::string_view word;  // borrows from the texts
  std::int64_t count = 0;
};

// The words of all texts in lexicographic order, added tokens cut out; counted by all threads, with
// a result that does not depend on their number. Throws Error{interrupted} on request.
std::vector<WordCount> count_words(std::span<const std::string_view> texts,
                                   const AddedTokenMatcher& added, const ProgressCallback& progress,
                                   StopFlag stop);

}  // namespace heed
