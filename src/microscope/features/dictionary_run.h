// A dictionary is trained on the activations of a model over a text, and measured in its passes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "microscope/features/activation_stream.h"
#include "microscope/features/dictionary_training.h"

namespace heed {

// What a dictionary is worth: mean next-token losses, in nats, of the model, with the dictionary in
// its pass, and with zeros there.
struct DictionaryEvaluation {
  std::int64_t tokens = 0;
  double loss = 0;
  double loss_with = 0;
  double loss_with_zeros = 0;
  double active = 0;      // features a position
  double explained = 0;   // 1 − Σ (y − ŷ)² / Σ (y − mean)²
  std::int64_t used = 0;  // features that were active at all

  // 1: the loss is the model's own; 0: that of zeros.
  double recovered() const { return (loss_with_zeros - loss_with) / (loss_with_zeros - loss); }
};

// Of windows of a text, `tokens` of them at most. Throws Error{unsupported} for a model that does
// not predict the next token.
struct DictionaryMeasuring {
  std::int64_t tokens = 1 << 15;
  std::int64_t window = 128;
  std::int64_t batch = 8;
  StopFlag stop = nullptr;
};
DictionaryEvaluation evaluate_dictionary(const Transformer& model, const Tokenizer& tokenizer,
                                         std::string_view text, const Dictionary& dictionary,
                                         const DictionaryMeasuring& measuring = {});

struct DictionaryRun {
  std::string input_point{};
  std::string output_point{};  // empty: the input point
  std::int64_t head = -1;      // of a point of heads; −1: all, side by side
  std::string model{};         // its name, for cfg.json
  DictionarySettings settings{};
  StreamSettings stream{};
  std::int64_t batch = 4096;  // rows of a step
  std::filesystem::path out;  // a directory of SAELens's layout
  // After every step, on the thread that called.
  std::function<void(std::int64_t step, const DictionaryStep& done)> progress{};
  StopFlag stop = nullptr;
  std::int64_t evaluated_tokens = 1 << 14;  // 0: it is not evaluated
};

struct DictionaryRunResult {
  std::int64_t steps = 0;
  std::int64_t tokens = 0;  // read, with those that are still in the buffer
  bool interrupted = false;
  DictionaryStep last{};
  std::optional<DictionaryEvaluation> evaluation{};  // none where it was interrupted
};

// Trains on a text and writes the dictionary, also of a run that is interrupted after its first
// step; evaluates it on `validation`, or where that is empty on the text's last 5 %, which it is
// then not trained on. Throws what DictionaryTrainer throws, Error{invalid_argument} for points
// that the model does not have, Error{conflict} for a directory that is not empty, and
// Error{out_of_memory} with an estimate where there is less memory, all before the work begins.
struct DictionaryTexts {
  std::string_view training;
  std::string_view validation{};
};
DictionaryRunResult train_dictionary(const Transformer& model, const Tokenizer& tokenizer,
                                     const DictionaryTexts& texts, const DictionaryRun& run);

}  // namespace heed
