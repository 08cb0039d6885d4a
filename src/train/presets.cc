#include "train/presets.h"

#include "model/presets.h"

namespace heed {
namespace {

// nanoGPT's runs over the characters of Shakespeare.
TrainSettings character_run(TrainSettings settings) {
  settings.tokenizer = "char";
  settings.learning_rate = 1e-3;
  settings.min_learning_rate = 1e-4;
  settings.beta2 = 0.99;
  settings.warmup_steps = 100;
  return settings;
}

// GPT-2 124M on a large text, as nanoGPT trains it: half a million tokens a step.
TrainSettings published_run(TrainSettings settings) {
  settings.steps = 600'000;
  settings.batch_size = 12;
  settings.accumulation = 40;
  settings.learning_rate = 6e-4;
  settings.min_learning_rate = 6e-5;
  settings.warmup_steps = 2000;
  settings.evaluate_every = 1000;
  settings.checkpoint_every = 1000;
  settings.sample_every = 1000;
  settings.validation_fraction = 0.005;
  return settings;
}

}  // namespace

TrainSettings train_preset(std::string_view name) {
  TrainSettings settings;
  settings.model = gpt_preset(name).config;
  if (name == "shakespeare-char-cpu") {
    settings = character_run(settings);
    settings.steps = 2000;
    settings.batch_size = 12;
    settings.precision = kernels::Precision::bf16;  // ends where f32 does, in half the time
    return settings;
  }
  if (name == "shakespeare-char") {
    settings = character_run(settings);
    settings.steps = 5000;
    settings.batch_size = 64;
    return settings;
  }
  if (name == "starter") {
    settings.steps = 13'000;
    settings.batch_size = 8;
    settings.sequence_length = 224;  // the longest story has 217 tokens
    settings.windows = Windows::prompts;
    settings.precision = kernels::Precision::bf16;
    settings.learning_rate = 1.5e-3;
    settings.min_learning_rate = 3e-5;
    settings.beta2 = 0.98;
    settings.validation_fraction = 0.0005;
    settings.evaluation_batches = 0;
    settings.checkpoint_every = 500;
    settings.sample_every = 2000;
    return settings;
  }
  return published_run(settings);
}

}  // namespace heed
