// Nearest-centroid classification of word vectors by sense.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace heed {

// A vector of a word in one of its senses, from one of two halves of the data.
struct LabelledVector {
  std::string word;
  std::string sense;
  int half = 0;  // 0 or 1
  std::vector<float> vector;
};

// For each word, the share of its vectors whose nearest mean (Euclidean distance), among the senses
// of that word, is that of their own sense; means come from one half and vectors from the other,
// both ways. A vector whose sense the other half lacks cannot be placed and does not count. Returns
// the mean over words with at least two senses in each half; NaN if there are none.
double nearest_centroid_accuracy(const std::vector<LabelledVector>& vectors);

}  // namespace heed
