#include "train/presets.h"

#include <cmath>

#include "base/error.h"
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

// The decoder of a translator, and the encoder like it: the original Transformer with its norms
// before the branches, which train without a long warmup.
StackSpecification translator_shape(std::int64_t layers, std::int64_t heads, std::int64_t channels,
                                    std::int64_t feed_forward) {
  constexpr std::int64_t longest = 256;  // tokens of a sentence
  constexpr std::int64_t vocabulary = 8000;
  StackSpecification shape = make_gpt_config(layers, heads, channels, longest, vocabulary);
  shape.block.attention.positions = PositionKind::sinusoidal;
  shape.block.feed_forward.width = feed_forward;
  shape.block.feed_forward.activation = Activation::relu;
  // Embeddings begin with a variance of 1 once they are scaled, as the sinusoids nearly have.
  shape.embedding_scale = std::sqrt(static_cast<float>(channels));
  shape.initial_deviation = 1.0F / shape.embedding_scale;
  return shape;
}

// Vaswani et al. 2017, 5.3 and 5.4.
TrainSettings translator_run(const StackSpecification& shape) {
  TrainSettings settings;
  settings.task = Task::pairs;
  settings.model = shape;
  settings.tokenizer = "bpe";
  settings.label_smoothing = 0.1F;
  settings.schedule = Schedule::inverse_sqrt;
  settings.beta2 = 0.98;
  settings.weight_decay = 0;
  settings.validation_fraction = 0.05;
  settings.evaluation_batches = 0;
  settings.sample_every = 0;
  settings.measure = Measure::bleu;
  return settings;
}

// Multi30k, English and German: 29,000 sentences in about 110 batches. A model as small, with as
// much dropout, is what so little text trains best (Wu, Kong, Bi, Li, Kwok: "Good for
// misconceived reasons", 2021).
TrainSettings multi30k_run() {
  TrainSettings settings = translator_run(translator_shape(4, 4, 128, 256));
  settings.model.embedding_dropout = settings.model.residual_dropout = 0.3F;
  settings.steps = 7500;
  settings.batch_tokens = 4096;
  settings.learning_rate = 5e-3;
  settings.warmup_steps = 2000;
  settings.evaluate_every = 200;
  settings.checkpoint_every = 400;
  settings.average_checkpoints = 10;
  return settings;
}

// Seconds on a few hundred pairs: for tests and first tries.
TrainSettings tiny_translator_run() {
  TrainSettings settings = translator_run(translator_shape(1, 2, 32, 64));
  settings.model.vocabulary_size = 500;
  settings.model.context = 64;
  settings.steps = 300;
  settings.batch_tokens = 512;
  settings.learning_rate = 1e-2;
  settings.warmup_steps = 50;
  settings.evaluate_every = 100;
  settings.checkpoint_every = 100;
  return settings;
}

// The translator that heed carries, on the microworld's pairs. Its loss is compared with their
// entropy, so labels are not smoothed, and there is as much text as wanted, so nothing is dropped.
TrainSettings embedded_translator_run() {
  // One head: with more, what one word owes another is spread over several.
  TrainSettings settings = translator_run(translator_shape(2, 1, 128, 512));
  settings.model.vocabulary_size = 3600;  // nearly every word is one token
  settings.model.context = 128;           // more than twice the longest sentence
  settings.label_smoothing = 0;
  settings.steps = 16000;
  settings.batch_tokens = 2560;
  settings.schedule = Schedule::cosine;
  settings.learning_rate = 3e-3;
  settings.min_learning_rate = 1e-5;
  settings.warmup_steps = 400;
  settings.evaluate_every = 500;
  settings.checkpoint_every = 500;
  settings.measure = Measure::none;
  return settings;
}

// BERT's head and mask on nanoGPT's small shape.
TrainSettings masked_run() {
  TrainSettings settings = character_run({});
  settings.model = model_preset("shakespeare-char-cpu").config;
  settings.task = Task::masked;
  settings.tokenizer = "bpe";
  settings.model.vocabulary_size = 2000;
  settings.model.role = StackRole::encoder;
  settings.model.block.attention.mask = {.kind = MaskKind::full};
  settings.model.block.norm.placement = NormPlacement::post;
  settings.model.block.feed_forward.activation = Activation::gelu_erf;
  settings.model.final_norm = false;
  settings.model.embedding_norm = true;
  settings.model.prediction_head = true;
  settings.model.token_types = 2;  // as BERT's layout has them; a text alone is the first
  set_biases(settings.model, true);
  settings.model.unembedding_bias = true;
  settings.steps = 2000;
  settings.batch_size = 12;
  settings.sample_every = 0;
  return settings;
}

struct RunPreset {
  const char* name;
  TrainSettings (*settings)();
};

constexpr RunPreset run_presets[] = {{"multi30k-en-de", &multi30k_run},
                                     {"translator", &embedded_translator_run},
                                     {"translator-tiny", &tiny_translator_run},
                                     {"shakespeare-masked", &masked_run}};

const RunPreset* find_run_preset(std::string_view name) {
  for (const RunPreset& preset : run_presets) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

TrainSettings settings_of_preset(std::string_view name) {
  if (const RunPreset* const preset = find_run_preset(name)) return preset->settings();
  require(is_model_preset(name), ErrorCode::not_found,
          "there is no config named '{}'; expected one of {}, {}", name, run_preset_names(),
          model_preset_names());
  TrainSettings settings;
  settings.model = model_preset(name).config;
  if (name == "shakespeare-char-cpu") {
    settings = character_run(settings);
    settings.steps = 2000;
    settings.batch_size = 12;
    return settings;
  }
  if (name == "shakespeare-char-llama") {
    settings = character_run(settings);
    settings.steps = 2000;
    settings.batch_size = 12;
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

}  // namespace

bool is_run_preset(std::string_view name) { return find_run_preset(name) != nullptr; }

std::string run_preset_names() {
  std::string names;
  for (const RunPreset& preset : run_presets) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", preset.name);
  }
  return names;
}

TrainSettings train_preset(std::string_view name) {
  TrainSettings settings = settings_of_preset(name);
  settings.precision.reset();  // by the machine
  return settings;
}

}  // namespace heed
