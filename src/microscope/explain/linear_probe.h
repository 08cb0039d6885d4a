// A linear probe: what a linear map can read from vectors (Alain and Bengio, Understanding
// intermediate layers using linear classifier probes, 2017).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace heed {

// Ridge regression of one-hot classes on vectors that are centred and divided by their mean
// length. Exact, so that the same vectors give the same probe.
class LinearProbe {
 public:
  // vectors (N, C) and the class of each, below `classes`. Throws Error{invalid_argument} for no
  // vectors, or fewer than two classes.
  LinearProbe(View<const float> vectors, std::span<const std::size_t> labels, std::size_t classes);

  std::vector<double> scores(std::span<const float> vector) const;  // of each class
  std::size_t read(std::span<const float> vector) const;            // the class with the largest

  // The share of vectors (M, C) that are read right.
  double accuracy(View<const float> vectors, std::span<const std::size_t> labels) const;

 private:
  std::size_t classes_;
  double length_ = 1;            // of the centred vectors, root mean square
  std::vector<double> mean_;     // (C)
  std::vector<double> weights_;  // (C, classes)
  std::vector<double> shares_;   // of the classes
};

// What a probe is worth at one depth. The control has the same vectors, with labels in a random
// order in training: what it reads right, it reads by chance.
struct ProbeAccuracy {
  double accuracy = 0;
  double shuffled = 0;        // the mean of five orders
  std::int64_t held_out = 0;  // vectors that both were measured on

  // Whether it reads more than another probe of the same vectors or texts: by more than two
  // standard errors of the difference of two independent shares.
  bool beats(const ProbeAccuracy& other) const;
};
ProbeAccuracy probe_accuracy(View<const float> training, std::span<const std::size_t> labels,
                             View<const float> held_out,
                             std::span<const std::size_t> held_out_labels, std::size_t classes);

}  // namespace heed
