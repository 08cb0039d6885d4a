// Cross-entropy, on the device. Targets are the processor's.
#include "kernels/cuda/loss.h"

#include <vector>

#include "kernels/backends.h"
#include "kernels/cuda/launch.h"
#include "kernels/element_checks.h"

namespace heed::kernels {
namespace {

using cuda::Uploaded;

void launch_cross_entropy(HeedCrossEntropy operands, View<const float> logits,
                          View<const std::int32_t> targets) {
  operands.rows = logits.extent(0);
  operands.words = logits.extent(1);
  if (operands.rows == 0) return;
  const Uploaded<std::int32_t> uploaded(targets.span());
  operands.targets = uploaded.data();
  static const cuda::Function<HeedCrossEntropy> launch("cross_entropy");
  launch(operands);
}

}  // namespace

void cuda::cross_entropy_forward(View<const float> logits, View<const std::int32_t> targets,
                                 View<float> losses, const LabelSmoothing<float>& smoothing) {
  checks::cross_entropy(logits, targets, losses, smoothing);
  launch_cross_entropy({.logits = const_cast<float*>(logits.data()),  // which stay as they are
                        .losses = losses.data(),
                        .smoothed_losses = smoothing.losses.data(),
                        .smoothing_rate = smoothing.rate},
                       logits, targets);
}

void cuda::cross_entropy_forward_backward(View<float> logits, View<const std::int32_t> targets,
                                          float scale, View<float> losses,
                                          const LabelSmoothing<float>& smoothing) {
  checks::cross_entropy(logits, targets, losses, smoothing);
  launch_cross_entropy({.logits = logits.data(),
                        .losses = losses.data(),
                        .smoothed_losses = smoothing.losses.data(),
                        .smoothing_rate = smoothing.rate,
                        .differentiates = 1,
                        .scale = scale,
                        .spread = scale * smoothing.rate / static_cast<float>(logits.extent(1))},
                       logits, targets);
}

void cuda::cross_entropy_piece_forward(View<const float> logits, const VocabularyPiece& piece,
                                       View<const std::int32_t> targets,
                                       const VocabularySums<float>& sums) {
  checks::cross_entropy_piece(logits, piece, targets, sums.normaliser, "normalisers");
  checks::contiguous(sums.target_logit, targets.shape(), "logits of targets");
  if (sums.logit_sum.present()) checks::contiguous(sums.logit_sum, targets.shape(), "sums");
  if (logits.extent(1) == 0) return;
  launch_cross_entropy({.logits = const_cast<float*>(logits.data()),  // which stay as they are
                        .first_word = piece.first,
                        .normalisers = sums.normaliser.data(),
                        .target_logits = sums.target_logit.data(),
                        .logit_sums = sums.logit_sum.data()},
                       logits, targets);
}

void cuda::cross_entropy_piece_backward(View<float> logits, const VocabularyPiece& piece,
                                        View<const std::int32_t> targets,
                                        View<const float> normalisers, float scale,
                                        float smoothing_rate) {
  checks::cross_entropy_piece(logits, piece, targets, normalisers, "normalisers");
  launch_cross_entropy({.logits = logits.data(),
                        .first_word = piece.first,
                        .smoothing_rate = smoothing_rate,
                        .differentiates = 1,
                        .scale = scale,
                        .spread = scale * smoothing_rate / static_cast<float>(piece.vocabulary),
                        .given_normalisers = normalisers.data()},
                       logits, targets);
}

void cuda::cross_entropy_piece_losses(const VocabularySums<float>& sums, std::int64_t vocabulary,
                                      View<const std::int32_t> targets, View<float> losses,
                                      const LabelSmoothing<float>& smoothing) {
  checks::piece_losses(sums, targets, losses, smoothing);
  if (targets.size() == 0) return;
  std::vector<std::int32_t> words(static_cast<std::size_t>(targets.extent(0)));
  for (std::int64_t n = 0; n < targets.extent(0); ++n)
    words[static_cast<std::size_t>(n)] = targets(n);
  const Uploaded<std::int32_t> uploaded(words);
  static const Function<HeedPieceLosses> launch("cross_entropy_piece_losses");
  launch({.rows = targets.extent(0),
          .targets = uploaded.data(),
          .normalisers = sums.normaliser.data(),
          .target_logits = sums.target_logit.data(),
          .logit_sums = sums.logit_sum.data(),
          .losses = losses.data(),
          .smoothed_losses = smoothing.losses.data(),
          .normaliser_stride = sums.normaliser.stride(0),
          .target_logit_stride = sums.target_logit.stride(0),
          .logit_sum_stride = sums.logit_sum.stride(0),
          .loss_stride = losses.stride(0),
          .smoothed_loss_stride = smoothing.losses.stride(0),
          .rate = smoothing.rate,
          .vocabulary = static_cast<float>(vocabulary)});
}

}  // namespace heed::kernels
