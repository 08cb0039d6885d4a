// Everything that determines what a training run computes, under one flat set of names: in presets,
// JSON files, on the command line (`--set name=value`) and in a run's record.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "comm/group.h"
#include "model/architecture.h"

namespace heed {

// What a model learns.
enum class Task {
  language_model,  // to predict the next token of a text
  masked,          // to predict hidden tokens of a text from both sides (Devlin et al. 2019)
  pairs,           // to predict a text from another, as translators do (Vaswani et al. 2017)
};

enum class Schedule { constant, linear, cosine, inverse_sqrt };

// What a run measures at every evaluation besides the loss.
enum class Measure {
  none,
  induction,
  bleu,  // of translations of the validation sources; pairs only. Says which evaluation is best
};

// Where training sequences begin.
enum class Windows {
  // Each epoch cuts the text, from a fresh random phase, into windows that lie end to end. The
  // fewer than sequence_length tokens before the first and after the last are covered by other
  // epochs.
  stream,
  // Each document begins one window, and a long one another every sequence_length tokens; what
  // follows in the text fills the window. No sequence begins without its context.
  documents,
  // As documents, but half of the windows, chosen at random in every epoch, leave out their first
  // token, which is the end of the text before: so do the prompts that users write.
  prompts,
};

struct TrainSettings {
  Task task = Task::language_model;

  // The model, when it is trained from scratch. The tokenizer decides end_of_text, and
  // vocabulary_size unless it is learned from the data. For pairs it is the decoder, and the
  // encoder is made like it (pair_architecture); for masked it sees both sides.
  StackSpecification model;
  std::int64_t encoder_layers = 0;  // 0: as many as the decoder has

  // The text: "char" (characters of the data), "bpe" (byte pairs learned from the data; of both
  // sides of pairs, and with the special tokens that the task needs), or the path of a tokenizer.
  std::string tokenizer = "bpe";
  double validation_fraction = 0.1;  // the end of the data, when no validation file is given

  // A step: batch_size · accumulation sequences of sequence_length tokens, or accumulation batches
  // of pairs that have at most batch_tokens tokens in all on either side.
  std::int64_t steps = 2000;
  std::int64_t batch_size = 12;
  std::int64_t batch_tokens = 4096;
  std::int64_t accumulation = 1;
  std::int64_t sequence_length = 0;  // 0: the model's context
  Windows windows = Windows::stream;
  double masked_fraction = 0.15;  // of the tokens that a masked language model predicts

  // Processes that share every sequence: each has the queries of its part, and keys and values go
  // around (model/ring_attention.h). 1: sequences are whole.
  std::int64_t sequence_parallel = 1;

  // The precision of matrix products; parameters and moments are always f32. Nothing: chosen by the
  // machine where the run begins (settle_precision), and recorded.
  std::optional<kernels::Precision> precision = kernels::Precision::f32;
  // Whether backward recomputes each block from the residual stream instead of keeping its
  // activations: less memory, a quarter more work, the same numbers.
  bool recompute = false;

  // With several processes: what each keeps only a part of, moments (1), gradients too (2), or
  // parameters too (3); and how gradients travel between them.
  std::int64_t shard = 1;
  Wire wire = Wire::f32;

  // The share of each target that is spread over the whole vocabulary. Losses are reported without.
  float label_smoothing = 0.0F;

  // AdamW; decay applies to matrices only. Gradients are scaled down to a norm of at most clip (0:
  // no clipping).
  double learning_rate = 1e-3;
  double min_learning_rate = 1e-4;  // where the schedule ends
  Schedule schedule = Schedule::cosine;
  std::int64_t warmup_steps = 100;
  std::int64_t decay_steps = 0;  // where the schedule reaches the minimum; 0: at `steps`
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  double clip = 1.0;
  std::uint64_t seed = 1337;

  // What happens during training. 0: never.
  std::int64_t evaluate_every = 250;
  std::int64_t evaluation_batches = 20;  // of batch_size sequences; 0: the whole validation data
  // Ends the run after this many evaluations without a lower validation loss or, with
  // Measure::bleu, a higher BLEU; 0: never.
  std::int64_t early_stop = 0;
  // The run's result is the mean of the parameters at this many last evaluations; 0: those of the
  // last step.
  std::int64_t average_checkpoints = 0;
  std::int64_t checkpoint_every = 500;
  // Keeps the model directory of each of these steps, of the untrained model and of the last step.
  std::int64_t keep_every = 0;
  std::int64_t sample_every = 500;
  std::int64_t sample_tokens = 100;
  Measure measure = Measure::none;
  // How sources are translated for Measure::bleu: 1 is greedy.
  std::int64_t beams = 1;
  double length_penalty = 1;

  std::int64_t sequence() const { return sequence_length > 0 ? sequence_length : model.context; }
  // For pairs: the maximum.
  std::int64_t tokens_per_step() const {
    return accumulation * (task == Task::pairs ? batch_tokens : batch_size * sequence());
  }

  // Throws Error{invalid_argument} naming the first invalid setting.
  void validate() const;
};

// The encoder and decoder that `settings` describe: two stacks of the same kind with one token
// embedding. Its vocabulary and special tokens are the tokenizer's to decide.
Architecture pair_architecture(const TrainSettings& settings);

// Sets one by name. Throws Error{invalid_argument} for an unknown name (the nearest is offered) or
// a value that it cannot take.
void set_setting(TrainSettings& settings, std::string_view name, std::string_view value);

// Overrides settings with a JSON object of names and values.
void apply_settings(TrainSettings& settings, const Json& values, const std::string& source);
OrderedJson settings_to_json(const TrainSettings& settings);

// The names whose values differ, each as "name: 12 -> 16".
std::vector<std::string> settings_differences(const TrainSettings& before,
                                              const TrainSettings& after);

// A setting has a name, a reader from JSON and a writer to JSON. Text from the command line is
// parsed as JSON, or taken as a string where it is not valid JSON.
struct Setting {
  const char* name;
  std::function<void(TrainSettings&, const Json&)> read;
  std::function<Json(const TrainSettings&)> write;
};

const std::vector<Setting>& all_settings();

// Decides the precision of settings that leave it open (precision=auto), by the instruction set in
// use and the width of the model alone: bf16 where tiles multiply it (AMX) and the model has at
// least 192 channels, else f32.
void settle_precision(TrainSettings& settings, Device device = {});

// A complete run known by name: a shape of model/presets.h with the settings that train it. Throws
// Error{not_found} with the names there are.
TrainSettings train_preset(std::string_view name);

// Whether a name is that of a run whose shape has no other name: translators, masked models.
bool is_run_preset(std::string_view name);
std::string run_preset_names();  // "multi30k-en-de, translator, …"

}  // namespace heed
