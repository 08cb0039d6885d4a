// How well a model predicts a text.
//
//   heed::TextEvaluation found = heed::evaluate_text(model, text);
//   found.perplexity;
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/heed.h"

namespace heed {

// The model runs on windows of `window` tokens, each `stride` tokens after the previous one; a
// window scores the tokens that no earlier one has. A smaller stride gives every token more
// context, and costs more.
struct EvaluateOptions {
  std::int64_t window = 0;  // 0: the model's context
  std::int64_t stride = 0;  // 0: window
  std::int64_t batch = 8;   // windows computed together
  std::function<void(std::int64_t done, std::int64_t tokens)> progress{};
  const std::atomic<bool>* stop = nullptr;  // set to true to stop: throws Error{interrupted}
};

struct TextEvaluation {
  std::int64_t tokens = 0;                 // scored: all that another one precedes
  double loss = 0;                         // mean over them, nats
  std::optional<double> standard_error{};  // of the loss, from the spread between windows
  double perplexity = 0;                   // e^loss
  std::optional<double> bits_per_byte{};   // of a text; of tokens there is none
  Array losses;  // of each token but the first, nats; a text's end-of-text token, which is put in
                 // front of it, makes its own first token the second
};

// All throw Error{invalid_argument} for fewer than two tokens, tokens outside the vocabulary and
// impossible options. evaluate_text() and evaluate_file() put the tokenizer's end-of-text token, if
// it has one, in front of the text, so that its first word is predicted too; they throw
// Error{not_found} without a tokenizer, evaluate_file() also without the file.
TextEvaluation evaluate_text(const Model& model, std::string_view text,
                             const EvaluateOptions& options = {});
TextEvaluation evaluate_file(const Model& model, const std::filesystem::path& file,
                             const EvaluateOptions& options = {});
TextEvaluation evaluate_tokens(const Model& model, std::span<const std::int32_t> tokens,
                               const EvaluateOptions& options = {});

// Answers to the questions of a task's file (docs/command_line.md): HellaSwag's and ARC's, of which
// the likeliest of several continuations is chosen, or LAMBADA's, of which the last word is to be
// predicted. Errors are standard errors of the means, absent for one question.
struct TaskEvaluation {
  struct Share {
    double mean = 0;
    std::optional<double> standard_error{};
  };
  std::string layout;  // "HellaSwag", "ARC" or "LAMBADA"
  std::int64_t questions = 0;
  std::int64_t shortened = 0;  // contexts that lost their beginning to fit
  Share accuracy{};            // of choices by their likelihood; of last words, whether written
  std::optional<Share> accuracy_by_length{};  // of choices by likelihood for each character
  std::optional<double> chance{};             // what guessing among the choices reaches
  std::optional<Share> perplexity{};          // of last words: e^(mean loss of a word)

  struct Answer {
    std::vector<double> log_likelihoods{};  // nats, of each continuation
    std::int64_t chosen = 0;                // by likelihood; of a last word 0 where it is written
    std::int64_t chosen_by_length = 0;
    std::int64_t right = 0;
    bool is_right = false;
  };
  std::vector<Answer> answers{};
};

struct TaskOptions {
  std::int64_t limit = 0;  // the first N questions; 0: all
  std::function<void(std::int64_t done, std::int64_t questions)> progress{};
  const std::atomic<bool>* stop = nullptr;  // set to true to stop: throws Error{interrupted}
};

// Throws Error{corrupt_data} with the line for a file of another form, Error{not_found} without the
// file or a tokenizer, Error{invalid_argument} for a continuation that does not fit into the
// model's context, and Error{unsupported} for a model that does not predict the next token.
TaskEvaluation evaluate_task(const Model& model, const std::filesystem::path& file,
                             const TaskOptions& options = {});

}  // namespace heed
