// A small run of training on a short text.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "model/architecture.h"
#include "train/trainer.h"

namespace heed::testing {

// Dropout on, two micro-batches a step, and epochs of a few steps.
inline TrainSettings small_settings() {
  TrainSettings settings;
  settings.model = make_gpt_config(2, 2, 16, 8, 300);
  settings.model.embedding_dropout = settings.model.attention_dropout =
      settings.model.residual_dropout = 0.1F;
  settings.tokenizer = "char";
  settings.steps = 24;
  settings.batch_size = 3;
  settings.accumulation = 2;
  settings.warmup_steps = 4;
  settings.learning_rate = 1e-2;
  settings.evaluate_every = 5;
  settings.evaluation_batches = 0;
  settings.checkpoint_every = 7;
  settings.sample_every = 0;
  return settings;
}

class Training : public ::testing::Test {
 protected:
  Training() {
    std::string text;
    for (int i = 0; i < 30; ++i) text += "the quick brown fox jumps over the lazy dog. ";
    write_text_file(directory_ / "text.txt", text);
  }

  TrainRequest request(const std::string& out) const {
    return {.settings = small_settings(),
            .data = {directory_ / "text.txt"},
            .out = directory_ / out,
            .cache = directory_ / "cache"};
  }
  std::string weights(const std::string& out) const {
    return read_text_file(directory_ / out / "last" / "model.safetensors");
  }

  TemporaryDirectory directory_;
};

}  // namespace heed::testing
