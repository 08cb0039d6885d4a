// Training: from scratch, from another model, or on from where a run stopped.
//
//   heed::TrainingResult result = heed::train_model({
//       .files = {"shakespeare.txt"},
//       .out = "runs/shakespeare",
//       .settings = {{"steps", "500"}, {"batch_size", "8"}},
//       .progress = [](const heed::TrainingProgress& now) { show(now.step, now.loss); }});
//   heed::Model model = heed::Model::load("runs/shakespeare");
//
// Losses are means over tokens, in nats; of pairs, over tokens of the targets.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heed/activations.h"
#include "heed/error.h"

namespace heed {

struct TrainingProgress {
  std::int64_t step = 0;   // steps finished
  std::int64_t steps = 0;  // of the whole run
  double loss = 0;         // of this step
  double learning_rate = 0;
  double tokens_per_second = 0;
  double seconds_left = 0;
  std::optional<double> validation_loss{};  // where this step was evaluated
};

struct TrainingOptions {
  // What is trained on: text files, or a text, which is kept in the run's directory. A resumed run
  // goes on with its own if none is given.
  std::vector<std::filesystem::path> files{};
  std::string text{};
  std::filesystem::path validation{};  // a text file; empty: the end of what is trained on

  // Or pairs, which train a translator: source and target, two text files whose lines with the same
  // number belong together, or one with source, tab and target in each line. Names that end in .gz
  // are decompressed.
  std::vector<std::filesystem::path> pairs{};
  std::vector<std::filesystem::path> validation_pairs{};  // empty: the last of the pairs

  std::filesystem::path out;  // the directory of the run
  bool resume = false;        // continue the run in `out`; else it must hold none, and no model

  // Settings by name and value, as in `heed train --set`, on top of a preset or a JSON file of
  // settings; empty: "shakespeare-char-cpu" or, for pairs, "multi30k-en-de". A resumed run begins
  // with its own settings, of which `steps` may become another number.
  std::string preset{};
  std::vector<std::pair<std::string, std::string>> settings{};
  std::filesystem::path from{};  // model directory to fine-tune; empty: from scratch

  // Called after every step, and once more for a step that was evaluated; and with samples of the
  // model's text every `sample_every` steps. On the thread that called train_model(). An exception
  // ends the training and is rethrown; saved checkpoints stay.
  std::function<void(const TrainingProgress&)> progress{};
  std::function<void(std::int64_t step, const std::string& text)> sampled{};

  // Called in the passes of training steps, as those of heed/activations.h, with values of the
  // batch (B, T, …); of pairs (1, N, …), one below the other. Backward goes on from what hooks
  // leave, and takes what they changed for a constant that they added: a gradient hook at the same
  // point can give another derivative. Throws Error{unsupported} for hooks that change norms,
  // scores, patterns and results of heads, which can only be read. Not saved with the run.
  std::vector<Hook> hooks{};
  std::vector<Hook> gradient_hooks{};

  // Multiplies the schedule's learning rate, read before every step: it may change at any time.
  const std::atomic<double>* learning_rate_factor = nullptr;

  // Set it to true, from a signal handler or another thread, to stop within a part of a step.
  const std::atomic<bool>* stop = nullptr;
};

// A loss after so many steps.
struct TrainingLoss {
  std::int64_t step = 0;
  double loss = 0;
};

struct TrainingResult {
  std::int64_t steps = 0;                  // finished, over all sessions of the run
  std::vector<TrainingLoss> losses;        // of every step of this call
  std::vector<TrainingLoss> validation;    // of every evaluation of this call
  std::optional<double> validation_loss;   // over the whole validation text, at the end
  std::optional<double> validation_error;  // its standard error
  std::optional<double> bleu;        // of the validation pairs' translations, where measure is bleu
  double seconds = 0;                // spent training, over all sessions of the run
  std::filesystem::path checkpoint;  // a model directory; empty: stopped before the first
  bool interrupted = false;          // stopped: all finished steps are saved, see `resume`
};

// Throws Error{invalid_argument} for an unknown setting (with the nearest name), a value that it
// cannot take and missing or empty text; Error{not_found} for a missing file; Error{conflict} for
// a directory that holds another run or a model or that another process trains in, and for a
// resumed run whose settings or text changed; Error{diverged} when the loss is no longer finite.
TrainingResult train_model(const TrainingOptions& options);

}  // namespace heed
