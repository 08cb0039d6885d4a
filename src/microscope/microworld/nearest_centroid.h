// Do vectors of the same kind lie together? Measured by the nearest of the kinds' means.
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

// For each word, the share of its vectors that lie nearest, by Euclidean distance, to the mean of
// their own sense among the senses of that word; means come from one half, the vectors from the
// other, both ways. The result is the mean over words that have at least two senses in each half;
// NaN when there is none.
double nearest_centroid_accuracy(const std::vector<LabelledVector>& vectors);

}  // namespace heed
