#include "train/settings.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "kernels/instruction_sets.h"
#include "model/presets.h"

namespace heed {
namespace {

const Setting* find_setting(std::string_view name) {
  const auto& settings = all_settings();
  const auto found = std::ranges::find(settings, name, &Setting::name);
  return found == settings.end() ? nullptr : &*found;
}

const Setting& get_setting(std::string_view name, const std::string& source) {
  if (const Setting* setting = find_setting(name)) return *setting;
  std::vector<std::string> names;
  for (const Setting& setting : all_settings()) names.emplace_back(setting.name);
  fail(ErrorCode::invalid_argument, "{}there is no setting '{}'; did you mean '{}'?", source, name,
       nearest_names(name, names, 1).front());
}

// "dropout" stands for all three rates.
constexpr const char* dropout_rates[] = {"embedding_dropout", "attention_dropout",
                                         "residual_dropout"};

void apply_one(TrainSettings& settings, std::string_view name, const Json& value,
               const std::string& source) {
  if (name == "dropout") {
    for (const char* rate : dropout_rates) get_setting(rate, source).read(settings, value);
    return;
  }
  // Of pairs, `layers` are the decoder's.
  get_setting(name == "decoder_layers" ? "layers" : name, source).read(settings, value);
}

// Sizes that follow from others keep the usual proportions until they are set themselves.
void derive_sizes(TrainSettings& settings, std::string_view changed) {
  StackSpecification& model = settings.model;
  AttentionSpecification& attention = model.block.attention;
  if ((changed == "channels" || changed == "heads") && attention.query_heads > 0) {
    attention.head_size = model.channels / attention.query_heads;
  }
  std::vector<std::int64_t>& windows = attention.mask.windows;
  if (changed == "layers" && !windows.empty() && model.layers > 0 &&
      std::ranges::all_of(windows, [&](std::int64_t size) { return size == windows.front(); })) {
    windows.resize(static_cast<std::size_t>(model.layers), windows.front());
  }
  if (changed == "heads") attention.key_value_heads = attention.query_heads;
  if (changed == "channels") model.block.feed_forward.width = 4 * model.channels;
  // The original's embeddings are multiplied by √C.
  if (changed == "channels" && model.embedding_scale != 1.0F && model.channels > 0) {
    model.embedding_scale = std::sqrt(static_cast<float>(model.channels));
  }
  if (changed == "norm_placement") model.final_norm = !model.is_post_norm();
  if (changed == "task") {
    const bool masked = settings.task == Task::masked;
    attention.mask = {.kind = masked ? MaskKind::full : MaskKind::causal};
    model.role = masked ? StackRole::encoder : StackRole::decoder;
  }
  if (changed == "norm" && model.block.norm.kind == NormKind::rms) model.block.norm.bias = false;
}

// With these, no count of a step's tokens or of a run's passes can pass 2^63.
constexpr std::int64_t max_steps = std::int64_t{1} << 32;
constexpr std::int64_t max_sequences = std::int64_t{1} << 16;
constexpr std::int64_t max_batch_tokens = std::int64_t{1} << 24;
constexpr std::int64_t max_averaged = 1000;
constexpr std::int64_t max_beams = 1000;

void require_between(std::int64_t value, std::int64_t least, std::int64_t most, const char* name) {
  require(value >= least && value <= most, ErrorCode::invalid_argument,
          "the setting '{}' must be between {} and {}, not {}", name, least, most, value);
}

void require_at_least(std::int64_t value, std::int64_t least, const char* name) {
  require(value >= least, ErrorCode::invalid_argument,
          "the setting '{}' must be at least {}, not {}", name, least, value);
}

void require_number(double value, bool holds, const char* name, const char* expected) {
  require(std::isfinite(value) && holds, ErrorCode::invalid_argument,
          "the setting '{}' must be {}, not {}", name, expected, value);
}

// What only some tasks have.
void validate_task(const TrainSettings& settings) {
  require(settings.task == Task::pairs || settings.measure != Measure::bleu,
          ErrorCode::invalid_argument,
          "the setting 'measure' is bleu, which only the task 'pairs' has");
  require(settings.task == Task::language_model || settings.measure != Measure::induction,
          ErrorCode::invalid_argument,
          "the setting 'measure' is induction, which only the task 'language_model' has");
  require(settings.task != Task::pairs || settings.sequence_parallel == 1,
          ErrorCode::invalid_argument,
          "the setting 'sequence_parallel' is {}, but the sentences of the task 'pairs' are whole: "
          "expected 1",
          settings.sequence_parallel);
  require(settings.task == Task::pairs || settings.encoder_layers == 0, ErrorCode::invalid_argument,
          "the setting 'encoder_layers' is {}, but only the task 'pairs' has an encoder beside its "
          "decoder",
          settings.encoder_layers);
  require(settings.task != Task::pairs || settings.tokenizer != "char", ErrorCode::invalid_argument,
          "the setting 'tokenizer' is char, which has no token that ends a text: pairs need bpe or "
          "the path of a tokenizer");
  require(settings.task == Task::pairs ||
              settings.model.is_causal() == (settings.task == Task::language_model),
          ErrorCode::invalid_argument, "the task '{}' needs a {} model",
          settings.task == Task::masked ? "masked" : "language_model",
          settings.task == Task::masked ? "model that sees both sides, an encoder" : "causal");
}

}  // namespace

Architecture pair_architecture(const TrainSettings& settings) {
  StackSpecification decoder = settings.model;
  decoder.role = StackRole::decoder;
  decoder.block.attention.relative.both_directions = false;
  StackSpecification encoder = decoder;
  encoder.role = StackRole::encoder;
  encoder.layers = settings.encoder_layers > 0 ? settings.encoder_layers : decoder.layers;
  encoder.has_unembedding = false;
  encoder.unembedding_bias = false;
  encoder.block.attention.mask = {.kind = MaskKind::full};
  const bool is_relative = encoder.block.attention.positions == PositionKind::relative;
  encoder.block.attention.relative.both_directions = is_relative;
  decoder.block.cross_attention = encoder.block.attention;
  decoder.block.cross_attention->positions = PositionKind::none;
  return {.stacks = {encoder, decoder}};
}

void TrainSettings::validate() const {
  // Under the names that settings have: the model's own are those of config.json.
  for (const auto& [name, rate] : {std::pair("embedding_dropout", model.embedding_dropout),
                                   std::pair("attention_dropout", model.attention_dropout),
                                   std::pair("residual_dropout", model.residual_dropout)}) {
    require_number(rate, rate >= 0 && rate < 1, name, "at least 0 and below 1");
  }
  model.validate();
  require(
      model.channels % model.heads() == 0 || model.head_size() != model.channels / model.heads(),
      ErrorCode::invalid_argument,
      "{} channels cannot be divided into {} heads of equal size: change one of them, or set "
      "head_size",
      model.channels, model.heads());
  validate_task(*this);
  require(!tokenizer.empty(), ErrorCode::invalid_argument, "the setting 'tokenizer' is empty");
  require_number(validation_fraction, validation_fraction >= 0 && validation_fraction < 1,
                 "validation_fraction", "at least 0 and below 1");
  require_between(steps, 1, max_steps, "steps");
  require_between(batch_size, 1, max_sequences, "batch_size");
  require_between(batch_tokens, 1, max_batch_tokens, "batch_tokens");
  require_between(encoder_layers, 0, max_layers, "encoder_layers");
  require_between(accumulation, 1, max_sequences, "accumulation");
  require_between(shard, 1, 3, "shard");
  require(sequence_length >= 0 && sequence_length <= model.context, ErrorCode::invalid_argument,
          "the setting 'sequence_length' must be between 0 and the context of {}, not {}",
          model.context, sequence_length);
  require_between(sequence_parallel, 1, max_sequences, "sequence_parallel");
  require_number(masked_fraction, masked_fraction > 0 && masked_fraction < 1, "masked_fraction",
                 "above 0 and below 1");
  require_number(label_smoothing, label_smoothing >= 0 && label_smoothing < 1, "label_smoothing",
                 "at least 0 and below 1");
  require_number(learning_rate, learning_rate > 0, "learning_rate", "positive");
  require_number(min_learning_rate, min_learning_rate >= 0, "min_learning_rate", "at least 0");
  require_at_least(warmup_steps, 0, "warmup_steps");
  require_at_least(decay_steps, 0, "decay_steps");
  require_number(beta1, beta1 >= 0 && beta1 < 1, "beta1", "at least 0 and below 1");
  require_number(beta2, beta2 >= 0 && beta2 < 1, "beta2", "at least 0 and below 1");
  require_number(epsilon, epsilon > 0, "epsilon", "positive");
  require_number(weight_decay, weight_decay >= 0, "weight_decay", "at least 0");
  require_number(clip, clip >= 0, "clip", "at least 0");
  require_at_least(evaluate_every, 0, "evaluate_every");
  require_at_least(evaluation_batches, 0, "evaluation_batches");
  require_at_least(early_stop, 0, "early_stop");
  require(early_stop == 0 || evaluate_every > 0, ErrorCode::invalid_argument,
          "the setting 'early_stop' is {}, but 'evaluate_every' is 0: nothing is evaluated",
          early_stop);
  require_between(average_checkpoints, 0, max_averaged, "average_checkpoints");
  require_between(beams, 1, max_beams, "beams");
  require_number(length_penalty, true, "length_penalty", "a number");
  require_at_least(checkpoint_every, 0, "checkpoint_every");
  require_at_least(keep_every, 0, "keep_every");
  require_at_least(sample_every, 0, "sample_every");
  require_at_least(sample_tokens, 1, "sample_tokens");
}

void set_setting(TrainSettings& settings, std::string_view name, std::string_view value) {
  Json parsed = Json::parse(value.begin(), value.end(), nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) parsed = std::string(value);
  apply_one(settings, name, parsed, "");
  derive_sizes(settings, name);
}

void apply_settings(TrainSettings& settings, const Json& values, const std::string& source) {
  require(values.is_object(), ErrorCode::corrupt_data, "{}: expected a JSON object of settings",
          source);
  // First what others follow from, so that a file may state them in any order.
  for (const char* leading : {"task", "layers", "channels", "heads", "norm", "norm_placement"}) {
    if (!values.contains(leading)) continue;
    apply_one(settings, leading, values[leading], source + ": ");
    derive_sizes(settings, leading);
  }
  for (const auto& [name, value] : values.items()) {
    apply_one(settings, name, value, source + ": ");
  }
}

OrderedJson settings_to_json(const TrainSettings& settings) {
  OrderedJson json;
  for (const Setting& setting : all_settings()) json[setting.name] = setting.write(settings);
  return json;
}

std::vector<std::string> settings_differences(const TrainSettings& before,
                                              const TrainSettings& after) {
  std::vector<std::string> differences;
  for (const Setting& setting : all_settings()) {
    const Json was = setting.write(before);
    const Json is = setting.write(after);
    if (was != is) {
      differences.push_back(fmt::format("{}: {} -> {}", setting.name, was.dump(), is.dump()));
    }
  }
  return differences;
}

void settle_precision(TrainSettings& settings, Device device) {
  if (settings.precision) return;
  // On a Xeon a step in bf16 takes as long as in f32 with 128 channels, 0.76 of the time with 192.
  constexpr std::int64_t min_channels = 192;
  const bool has_tiles = !device.is_cpu() || kernels::has_tile_products();
  const bool takes_bf16 = has_tiles && settings.model.channels >= min_channels;
  settings.precision = takes_bf16 ? kernels::Precision::bf16 : kernels::Precision::f32;
}

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

struct CharacterRun {
  std::string_view name;
  std::int64_t steps;
  std::int64_t batch_size;
};
constexpr CharacterRun character_runs[] = {{"shakespeare-char-cpu", 2000, 12},
                                           {"shakespeare-char-llama", 2000, 12},
                                           {"shakespeare-char", 5000, 64}};

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
  set_biases(settings.model, Biases::all);
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
  for (const CharacterRun& run : character_runs) {
    if (name != run.name) continue;
    settings = character_run(settings);
    settings.steps = run.steps;
    settings.batch_size = run.batch_size;
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
  if (name == "english") {  // its second phase: see scripts/train_english.sh
    settings.steps = 5600;
    settings.batch_size = 16;
    settings.windows = Windows::stream;
    settings.schedule = Schedule::linear;
    settings.learning_rate = 1.4e-3;
    settings.min_learning_rate = 2e-5;
    settings.beta2 = 0.98;
    settings.warmup_steps = 100;
    settings.evaluate_every = 250;
    settings.evaluation_batches = 10;
    settings.checkpoint_every = 250;
    settings.sample_every = 0;
    settings.measure = Measure::induction;
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
