// Training of sparse dictionaries on rows of activations.
//
// Of N rows, features F and widths I and O, with A active features a row, a step multiplies
//   2·N·I·F        the encoder, the only dense product: which features are active is not known yet
//   2·N·A·(I + 3·O) reconstruction, gradients of activations and of both matrices: their rows of
//                  active features alone
// and the optimiser reads and writes each parameter and its two moments once, row by row, with the
// gradient of a row in the cache: gradients of all parameters never exist.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/progress.h"
#include "microscope/features/dictionary.h"

namespace heed {

struct DictionarySettings {
  // relu, with a penalty on activations; top_k; or jump_relu, with a penalty on how many are active
  // (Rajamanoharan et al. 2024).
  FeatureActivation activation = FeatureActivation::top_k;
  std::int64_t features = 0;  // F
  std::int64_t k = 32;        // of top_k
  double l1 = 5.0;  // of relu: · mean over rows of Σ activations, beside the squared error
  double l0 = 1.0;  // of jump_relu: · mean over rows of the number of active features
  double bandwidth = 0.05;  // around a threshold, in which pre-activations have a gradient by it
  double first_threshold = 0.01;  // of all features
  double learning_rate = 3e-4;
  double beta1 = 0.9;
  double beta2 = 0.999;
  std::int64_t steps = 1000;
  double warmup = 0.05;  // share of the steps over which the rate, and the penalty, rise from 0
  double decay = 0.2;    // share of them over which the rate falls to 0 at the end
  // A feature that was not active for so many rows is dead. Dead features learn to reconstruct what
  // the others miss (AuxK, Gao et al. 2024): the auxiliary_k of a row with the largest
  // pre-activations; 0: half of the outputs.
  std::int64_t dead_after = 1'000'000;
  std::int64_t auxiliary_k = 0;
  double auxiliary = 1.0 / 32;  // of its loss; 0: none
  // Every so many steps, until the rate falls, dead features are set anew (Bricken et al. 2023): to
  // rows of the batch, drawn with probabilities in proportion to the squares of their losses. The
  // encoder reads such a row with resample_norm of the mean norm of living features, the decoder
  // writes its target's direction, biases and moments are 0. 0: never.
  std::int64_t resample_every = 0;
  double resample_norm = 0.2;
  std::uint64_t seed = 0;
};

struct DictionaryStep {
  double loss = 0;             // mean over rows of the squared error, in the scale of training
  double penalty = 0;          // of relu and jump_relu
  double auxiliary = 0;        // the loss of dead features
  double active = 0;           // L0: active features a row
  double explained = 0;        // 1 − Σ (y − ŷ)² / Σ (y − mean)², of this batch
  std::int64_t dead = 0;       // features, when the step began
  std::int64_t resampled = 0;  // of these, at its end
};

// Memory of a trainer for batches of so many rows.
std::int64_t dictionary_training_bytes(const DictionarySpecification& specification,
                                       const DictionarySettings& settings, std::int64_t rows);

class DictionaryTrainer {
 public:
  // `specification` has sizes and points; activation, features and k are those of the settings.
  // first (N, I) and first_targets (N, O), of an autoencoder the same rows, give the scale, which
  // makes their mean squares 1 in training and is folded into the weights of the result, and the
  // first b_dec. Throws Error{invalid_argument} for settings that make no sense.
  DictionaryTrainer(DictionarySpecification specification, const DictionarySettings& settings,
                    View<const float> first, View<const float> first_targets);
  ~DictionaryTrainer();

  // One step on rows x (N, I) and what is to be reconstructed, y (N, O). Throws Error{diverged}
  // where the loss is not finite, Error{interrupted} when stopped: nothing has changed then.
  DictionaryStep step(View<const float> x, View<const float> y, StopFlag stop = nullptr);

  std::int64_t steps() const;
  // Of the weights so far, as they apply to activations of the model.
  Dictionary dictionary() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace heed
