#include "microscope/explain/composition.h"

#include <cmath>
#include <vector>

#include "base/threads.h"
#include "kernels/kernels.h"
#include "microscope/explain/head_weights.h"
#include "model/input_checks.h"

namespace heed {
namespace {

// x·yᵀ of rows x (M, C) and y (N, C): (M, N).
Tensor<float> products(View<const float> x, View<const float> y) {
  Tensor<float> result(Shape{x.extent(0), y.extent(0)});
  kernels::linear_forward(x, {.weight = y}, result);
  return result;
}

// Norms of a head's low-rank product leftᵀ·right. With Gram matrices
// G = left·leftᵀ and R = right·rightᵀ (D, D), ‖leftᵀ·right‖² = Σ G ⊙ R.
struct Factors {
  View<const float> left;   // (D, C)
  View<const float> right;  // (D, C)
};

double squared_norm(const Tensor<float>& left_gram, const Tensor<float>& right_gram) {
  double sum = 0;
  for (std::int64_t i = 0; i < left_gram.size(); ++i) {
    sum += static_cast<double>(left_gram[i]) * right_gram[i];
  }
  return sum;
}

// ‖aᵀ·M·b‖² = tr(G·M·R·Mᵀ) = Σ (G·M) ⊙ (M·R), for G = a·aᵀ, R = b·bᵀ and M (D, D); R is symmetric.
double squared_norm_through(const Tensor<float>& left_gram, View<const float> middle,
                            const Tensor<float>& right_gram) {
  const std::int64_t size = middle.extent(0);
  std::vector<double> left(static_cast<std::size_t>(size));   // a row of G·M
  std::vector<double> right(static_cast<std::size_t>(size));  // a row of M·R
  double sum = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    std::fill(left.begin(), left.end(), 0.0);
    std::fill(right.begin(), right.end(), 0.0);
    for (std::int64_t k = 0; k < size; ++k) {
      const double of_gram = left_gram[i * size + k];
      const double of_middle = middle(i, k);
      const float* const middle_row = &middle(k, 0);
      const float* const gram_row = right_gram.data() + k * size;
      for (std::int64_t j = 0; j < size; ++j) {
        left[j] += of_gram * middle_row[j];
        right[j] += of_middle * gram_row[j];
      }
    }
    for (std::int64_t j = 0; j < size; ++j) sum += left[j] * right[j];
  }
  return sum;
}

// The reader's factors: W = leftᵀ·right, where `left` multiplies the earlier head's output.
Factors reader(const LayerHeads& layer, std::int64_t head, CompositionKind kind) {
  switch (kind) {
    case CompositionKind::query: return {layer.query(head), layer.key(head)};
    case CompositionKind::key: return {layer.key(head), layer.query(head)};
    case CompositionKind::value: break;
  }
  return {layer.value(head), layer.output(head)};
}

View<const float> all_readers(const LayerHeads& layer, CompositionKind kind) {
  switch (kind) {
    case CompositionKind::query: return layer.all_queries();
    case CompositionKind::key: return layer.all_keys();
    case CompositionKind::value: break;
  }
  return layer.all_values();
}

// Per-head quantities, as writer and as reader.
struct HeadNorms {
  Tensor<float> value_gram;  // (D, D): of the writer's W_OV = valueᵀ·output, the side that reads
  double writer_norm = 0;    // ‖W_OV‖
  Tensor<float> right_gram;  // (D, D): of the reader's right factor
  double reader_norm = 0;    // ‖W‖
};

HeadNorms head_norms(const LayerHeads& layer, std::int64_t head, CompositionKind kind) {
  HeadNorms norms;
  norms.value_gram = products(layer.value(head), layer.value(head));
  norms.writer_norm =
      std::sqrt(squared_norm(norms.value_gram, products(layer.output(head), layer.output(head))));
  const Factors factors = reader(layer, head, kind);
  norms.right_gram = products(factors.right, factors.right);
  norms.reader_norm =
      std::sqrt(squared_norm(products(factors.left, factors.left), norms.right_gram));
  return norms;
}

}  // namespace

Tensor<float> composition_scores(const Transformer& gpt, CompositionKind kind) {
  require_sums_to_logits(gpt.specification(), "composition of heads");
  const StackSpecification& config = gpt.specification();
  const std::int64_t heads = config.heads();
  const std::int64_t size = config.head_size();
  const std::int64_t group = config.block.attention.group_size();
  std::vector<LayerHeads> layers;
  std::vector<HeadNorms> norms;
  for (std::int64_t l = 0; l < config.layers; ++l) {
    layers.emplace_back(gpt, l);
    for (std::int64_t h = 0; h < heads; ++h) norms.push_back(head_norms(layers[l], h, kind));
  }
  Tensor<float> scores(Shape{config.layers, heads, config.layers, heads});
  for (std::int64_t writer = 0; writer < config.layers; ++writer) {
    for (std::int64_t later = writer + 1; later < config.layers; ++later) {
      // Every head's output factor times every reader's left factor: (A, A), or (A, K) where keys
      // or values read, with one D x D block for each pair.
      const Tensor<float> middle =
          products(layers[writer].all_outputs(), all_readers(layers[later], kind));
      parallel_items(heads * heads, [&](std::int64_t pair) {
        const std::int64_t from = pair / heads;
        const std::int64_t to = pair % heads;
        const HeadNorms& a = norms[static_cast<std::size_t>(writer * heads + from)];
        const HeadNorms& b = norms[static_cast<std::size_t>(later * heads + to)];
        const std::int64_t read = kind == CompositionKind::query ? to : to / group;
        const View<const float> block = middle.view()
                                            .slice(0, from * size, (from + 1) * size)
                                            .slice(1, read * size, (read + 1) * size);
        const double composed = std::sqrt(squared_norm_through(a.value_gram, block, b.right_gram));
        const double apart = a.writer_norm * b.reader_norm;
        scores.view()(writer, from, later, to) =
            apart > 0 ? static_cast<float>(composed / apart) : 0.0F;
      });
    }
  }
  return scores;
}

}  // namespace heed
