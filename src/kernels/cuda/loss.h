/* Cross-entropy, of a whole vocabulary or of pieces of one. */
#pragma once

#include "tensor/device_library.h"

/* Of logits (rows, words), contiguous. What is not wanted is null. */
struct HeedCrossEntropy {
  long long rows, words;
  float* logits;
  const int* targets; /* (rows), of the whole vocabulary; −1: ignored */
  long long first_word;
  /* Losses of a whole vocabulary. */
  float* losses;
  float* smoothed_losses;
  float smoothing_rate;
  /* Sums over the pieces of a vocabulary, which go on. */
  float* normalisers;
  float* target_logits;
  float* logit_sums;
  /* Gradients, which overwrite the logits: scale · (softmax − wanted), where `spread` is
     scale · rate / V. Of pieces, with the given normalisers. */
  int differentiates;
  float scale, spread;
  const float* given_normalisers;
};

/* Losses from the sums over all pieces, of any strides. */
struct HeedPieceLosses {
  long long rows;
  const int* targets;
  const float* normalisers;
  const float* target_logits;
  const float* logit_sums;
  float* losses;
  float* smoothed_losses;
  long long normaliser_stride, target_logit_stride, logit_sum_stride, loss_stride,
      smoothed_loss_stride;
  float rate, vocabulary;
};
