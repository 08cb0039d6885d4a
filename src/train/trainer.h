// Training a GPT or an encoder on text files, or a translator on pairs of texts: from scratch, from
// another model, or on from where a run stopped.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/progress.h"
#include "comm/group.h"
#include "model/transformer.h"
#include "tokenizer/tokenizer.h"
#include "train/evaluation.h"
#include "train/memory.h"
#include "train/settings.h"

namespace heed {

struct StepReport {
  std::int64_t step = 0;  // steps finished
  std::int64_t steps = 0;
  double loss = 0;  // mean over the step's tokens, nats
  double learning_rate = 0;
  double gradient_norm = 0;      // before clipping
  double tokens_per_second = 0;  // over the last steps; of pairs: of their targets
  double flops_per_second = 0;   // counted by model_cost, over the last steps
  double seconds_left = 0;
  // Of a group: what the last step spent between the computation of its gradients and the next
  // step, as a part of its time; and the process whose gradients took longest.
  double communication = 0;
  int slowest_process = 0;
};

struct RunDescription {
  std::int64_t parameters = 0;
  std::int64_t training_tokens = 0;  // of both sides of pairs
  std::int64_t validation_tokens = 0;
  std::int64_t training_pairs = 0;  // 0: text
  std::int64_t validation_pairs = 0;
  std::int64_t vocabulary_size = 0;
  std::int64_t first_step = 0;  // above 0 when resumed
  int processes = 1;
  TrainingMemory memory;
  TrainSettings settings;
};

struct CheckpointWrite {
  std::int64_t step = 0;
  std::int64_t bytes = 0;
  std::optional<double> expected_seconds;  // what the one before took, if there was one
  bool stopping = false;                   // the run ends after it, on request
};

// Receives what happens during training; override what is of interest.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void preparing(const Progress&) {}
  virtual void noticed(const std::string& /*sentence*/) {}  // what the user should know; no error
  virtual void started(const RunDescription&) {}
  virtual void stepped(const StepReport&) {}
  // `is_best`: better than every one before, by the validation loss or, where it is measured, BLEU;
  // the model is in best/.
  virtual void evaluated(std::int64_t /*step*/, const Evaluation&, bool /*is_best*/) {}
  virtual void measured(std::int64_t /*step*/, const OrderedJson&, bool /*is_best*/) {}
  virtual void sampled(std::int64_t /*step*/, const std::string& /*text*/) {}
  // Writing a checkpoint is not interrupted, also not by a request to stop.
  virtual void saving(const CheckpointWrite&) {}
  virtual void saved(std::int64_t /*step*/, const std::filesystem::path&) {}
};

// What looks into passes, borrowed. The probe has to end a pass that is to be stopped.
struct PassHooks {
  Editor* editor = nullptr;
  Probe* probe = nullptr;
};

enum class RunStart {
  fresh,   // the directory must not hold a run
  resume,  // the directory must hold this run
};

struct TrainRequest {
  TrainSettings settings;
  // Texts; of pairs: source and target, or one file with a tab in each line (PairText).
  std::vector<std::filesystem::path> data;
  std::filesystem::path validation;  // empty: the last validation_fraction of the data
  // Of pairs whose validation targets are in a file of their own.
  std::filesystem::path validation_target{};
  std::filesystem::path from;  // model directory to fine-tune; empty: from scratch
  std::filesystem::path out;
  // Of tokens; empty: default_token_cache(). A run goes on without a cache that cannot be written.
  std::filesystem::path cache;
  // Of the whole data, in nats, where it is known: what its author's model needs to encode it.
  std::optional<double> entropy;
  // Multiplies the schedule's learning rate, read before every step; it may change at any time. A
  // run whose factor was not 1 cannot be repeated from its record. Null: 1.
  const std::atomic<double>* learning_rate_factor = nullptr;
  RunStart start = RunStart::fresh;
  // A fresh run may begin in the directory of a model, whose config.json it then removes.
  bool replaces_model = false;
  // Where events for TensorBoard go as well, beside metrics.jsonl; empty: nowhere.
  std::filesystem::path tensorboard{};
  TrainObserver* observer = nullptr;
  StopFlag stop = nullptr;
  // Makes, once the model is known, what looks into the passes of training steps; it is not asked
  // in evaluations. Activations are then kept even where settings ask to recompute them. Empty:
  // nothing looks. Throws Error{unsupported} where several processes train.
  std::function<PassHooks(const Architecture&)> hooks{};
  // Measures the model at every evaluation, as settings.measure asks; its members become a line of
  // metrics.jsonl. Empty: nothing is measured. Both may throw Error{interrupted} when stopped.
  std::function<OrderedJson(const Transformer&, const Tokenizer&)> measure;
  // Translates sources, for Measure::bleu. May throw Error{interrupted} when stopped.
  std::function<std::vector<std::string>(const Transformer&, const TranslationTokenizers&,
                                         std::span<const std::string> sources,
                                         const TrainSettings&)>
      translate{};
  // Generates a sample of the model's text; empty: no samples.
  std::function<std::string(const Transformer&, const Tokenizer&)> sample;
  // Where passes are computed and, by a process that is alone, updates: others exchange gradients
  // and parameters through the processors' memory. What is saved is the same, and a run may go on
  // elsewhere.
  Device device{};
  // The processes that train together, each with the same request; null: this one alone. The first
  // evaluates, measures, samples, writes the directory and tells its observer.
  Group* group = nullptr;
};

struct TrainSummary {
  std::int64_t steps = 0;                // finished, over all sessions of the run
  double train_loss = 0;                 // mean of the last steps; not a number without steps
  std::optional<Evaluation> validation;  // over the whole validation data, at the end
  // What was measured last: of the result, where parameters were averaged.
  std::optional<OrderedJson> measured{};
  std::int64_t averaged =
      0;  // evaluations whose parameters' mean is the result; 0: the last step's
  double tokens_per_second = 0;
  double seconds = 0;                // spent training, over all sessions of the run
  std::filesystem::path checkpoint;  // empty: stopped before the first one
  bool interrupted = false;          // stopped on request: all finished steps are saved
  std::optional<int> stopped_by{};  // of several processes, the one that was asked, if not all were
};

// Runs until settings.steps are done or a stop is requested; then saves. A stop takes effect within
// a part of a layer, also inside a step, an evaluation, a measurement or a sample; what it
// interrupts is discarded and repeated from its beginning when the run is resumed. Throws
// Error{conflict} for a directory with another run or a model, or that another process trains in,
// or a resumed run whose settings, data or tokenizer changed; Error{diverged} when the loss is no
// longer finite. Saved checkpoints stay intact.
//
// In a group every process calls it. Each computes its share of every batch, adds up a part of the
// gradients over all, updates that part of the parameters, whose moments it alone keeps, and gets
// the rest from the others: the run differs from that of one process by the rounding of sums alone,
// and repeats to the bit with as many processes and threads. Errors that all notice are
// AgreedErrors; after any other the caller has to end the group (Group::abort). A stop takes effect
// between steps.
TrainSummary train(const TrainRequest& request);

class Run;

// The same step by step, for a caller that does other work between the steps.
class TrainingRun {
 public:
  // Prepares text and model, and writes the first checkpoint.
  explicit TrainingRun(const TrainRequest& request);
  ~TrainingRun();
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  // Takes the next step, with the evaluation, the sample and the checkpoint that are due after it.
  // Returns whether another is left: none is after a stop.
  bool step();
  // Saves; once step() returned false.
  TrainSummary finish();

 private:
  std::unique_ptr<Run> run_;
};

}  // namespace heed
