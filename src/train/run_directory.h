// A run on disk:
//   run.json        what is trained: settings, data, tokenizer
//   metrics.jsonl   one line a step, one an evaluation
//   last/           model directory of the last checkpoint, and its training state
//   best/           model directory of the lowest validation loss or, if measured, highest BLEU
//   average/        model directory of the mean of the last evaluations' parameters, if averaged
//   evaluations/    those parameters, 00000250.safetensors
//   checkpoints/    model directories of steps that are kept, such as 00000250/
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/settings.h"
#include "train/training_state.h"

namespace heed {

// What run.json records.
struct RunRecord {
  TrainSettings settings;
  std::vector<std::string> data;  // absolute paths
  std::string validation;         // absolute path; empty: split off the data
  // The file of the validation targets of pairs, if they have one; absolute path, or empty.
  std::string validation_target{};
  std::string from;  // model directory that was fine-tuned; empty: from scratch
  std::string tokenizer_key;
  std::string data_key;        // names the exact training tokens, see TokenData
  std::string validation_key;  // likewise; empty: no validation text
  int threads = 0;             // that the run began with; 0: not recorded
  // The entropy of the whole text, nats; nothing where it is not known.
  std::optional<double> entropy_per_token{};
  std::string sentence;  // of the run's own text, to try its models on; empty: none
};

class RunDirectory {
 public:
  explicit RunDirectory(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path last() const { return root_ / "last"; }
  std::filesystem::path best() const { return root_ / "best"; }
  std::filesystem::path average() const { return root_ / "average"; }
  // What stands for the run: average/ once it is written, last/ before and without one.
  std::filesystem::path result() const;
  std::filesystem::path evaluations() const { return root_ / "evaluations"; }
  std::filesystem::path checkpoints() const { return root_ / "checkpoints"; }
  std::filesystem::path checkpoint(std::int64_t step) const;
  // The state of the last checkpoint; missing before it is written.
  std::filesystem::path state_file() const { return training_state_file(last()); }

  bool holds_a_run() const;

  // Whether the directory itself is that of a model, as commands that load one see it.
  bool holds_a_model() const;
  // Removes that model's description, so that the run's models are found; there may be none.
  void remove_model() const;

  // Whether the run was trained to its end. It writes the state of its last step after all metrics
  // and checkpoints. A run that was stopped earlier may be resumed, and is not finished.
  bool is_finished() const;

  // Records the run in its directory, which exists. Throws Error{conflict} when it holds one
  // already.
  void create(const RunRecord& record) const;
  // For a run that goes on with another number of steps.
  void replace_record(const RunRecord& record) const;
  // Throws Error{not_found} when there is no run, Error{corrupt_data} when its record is damaged.
  RunRecord read_record() const;
  // The SHA-256 of its record, but for the number of steps: the name of the run in its shards.
  std::string key() const;

  // Writes the model directory of a step atomically, by a function that saves to a given directory;
  // replaces an existing one.
  void keep_model(std::int64_t step,
                  const std::function<void(const std::filesystem::path&)>& save) const;

  // Removes partial files that killed processes left. The caller holds the directory locked.
  void remove_abandoned() const;

  std::filesystem::path metrics_file() const { return root_ / "metrics.jsonl"; }
  void append_metrics(const OrderedJson& line) const;
  // Removes the lines that a run resumed at `position` will write again: the lines of later steps
  // and, where the evaluation of its own step is still due, that step's lines after its loss.
  void truncate_metrics(const RunPosition& position) const;

 private:
  std::filesystem::path record_file() const { return root_ / "run.json"; }

  std::filesystem::path root_;
};

}  // namespace heed
