// One word in many sentences: whether its vectors lie by the sense that it has there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "microscope/explain/vectors.h"
#include "tensor/tensor.h"

namespace heed {

// Cosines are those of vectors less the mean of all of them: without it, what all sentences have
// in common would make every cosine large.
struct SenseSeparation {
  bool identical = false;  // all vectors are the same; the cosines are then 0, and p is 1
  double same = 0;         // mean cosine of two sentences with the same sense
  double other = 0;        // and of two with different senses
  // The control: the same sentences, their senses shuffled.
  double shuffled_same = 0;  // `same`, the mean of all shuffles
  double shuffled_high = 0;  // and what only one in twenty exceeds
  double p = 1;              // share of shuffles that reach same − other, counting the real one
  // same − other of each shuffle. The shuffles are the same for all sets with the same senses.
  std::vector<double> shuffled_differences{};

  bool apart() const;  // p ≤ 0.01
};

// The same p of the depth where the senses are most clearly apart, of several with the same senses:
// the largest difference, in standard deviations of the depth's shuffles, against the largest of
// each shuffle. So it does not fall because there are many depths.
double most_apart_p(std::span<const SenseSeparation> depths);

// The sense that a sentence outside the set lies nearest to.
struct NearestSense {
  std::size_t sense = 0;
  double margin = 0;      // mean cosine with its sentences less that with the next sense's
  double p = 1;           // share of shuffles with at least this margin, to whichever sense
  double least = 0;       // the margin that it needs
  bool is_clear = false;  // p ≤ 0.05 and margin ≥ least
};

// The vectors of one word at one depth.
class SenseVectors {
 public:
  static constexpr int shuffles = 999;

  // vectors (N, C) and the sense of each, from 0. Throws Error{invalid_argument} for fewer than two
  // senses, or fewer than two sentences of one.
  SenseVectors(View<const float> vectors, std::vector<std::size_t> senses);

  SenseSeparation separation() const;

  // Of a vector (C) that is not in the set.
  //
  // `least` is half the median margin of the sentences of that sense that lie nearest to it, or,
  // where it is larger, the largest margin of those that lie nearest to it and have another sense;
  // each is compared with the others of the set.
  NearestSense nearest(std::span<const float> vector) const;

  // Without regard to the senses.
  const PrincipalPlane& plane() const { return plane_; }
  double mean_length() const { return mean_length_; }  // of the vectors, not centred

 private:
  struct Margin {
    std::size_t sense = 0;
    double value = 0;
  };

  double cosine(std::size_t i, std::size_t j) const { return cosines_[i * senses_.size() + j]; }
  // Less the mean, of length 1; zero where nothing is left.
  std::vector<double> direction(std::span<const float> vector) const;
  // Which of the means of `cosines` by sense is the largest; sentence `left_out` does not count.
  Margin margin(std::span<const double> cosines, std::span<const std::size_t> senses,
                std::size_t left_out) const;

  std::vector<std::size_t> senses_;
  std::size_t sense_count_ = 0;
  PrincipalPlane plane_;
  double mean_length_ = 0;
  bool identical_ = false;
  std::vector<std::vector<double>> directions_;  // (N, C)
  std::vector<double> cosines_;                  // (N, N)
};

}  // namespace heed
