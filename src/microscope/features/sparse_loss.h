// Active features of a step of training, row by row and feature by feature, with their gradients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "microscope/features/dictionary.h"

namespace heed {

// Entries of rows (N, F), and the same by feature: which rows each is in.
struct EntriesByFeature {
  std::vector<std::int64_t> begins;   // (F + 1)
  std::vector<std::int32_t> rows;     // (E)
  std::vector<std::int64_t> entries;  // (E), where the entry is in the rows' order

  void sort(const FeatureRows& acts, std::int64_t count) {
    begins.assign(static_cast<std::size_t>(count) + 1, 0);
    for (const std::int32_t feature : acts.features) {
      ++begins[static_cast<std::size_t>(feature) + 1];
    }
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    rows.resize(acts.features.size());
    entries.resize(acts.features.size());
    std::vector<std::int64_t> next(begins.begin(), begins.end() - 1);
    for (std::int64_t n = 0; n < acts.rows(); ++n) {
      for (std::int64_t e = acts.begins[static_cast<std::size_t>(n)];
           e < acts.begins[static_cast<std::size_t>(n) + 1]; ++e) {
        const auto feature = static_cast<std::size_t>(acts.features[static_cast<std::size_t>(e)]);
        const auto at = static_cast<std::size_t>(next[feature]++);
        rows[at] = static_cast<std::int32_t>(n);
        entries[at] = e;
      }
    }
  }
};

// A loss of entries: what they reconstruct, and its gradients.
struct SparseLoss {
  FeatureRows acts;
  EntriesByFeature by_feature;
  Tensor<float> d_recons;     // (N, O)
  std::vector<float> d_acts;  // (E), which are those of pre-activations
  // Of jump_relu (E), else empty: gradients by the thresholds. Entries whose activation is 0 lie
  // within the bandwidth of theirs.
  std::vector<float> d_thresholds;
};

}  // namespace heed
