// Tests of language models by the likelihood of texts, as their files publish them: one JSON object
// a line, in one of three layouts.
//
//   HellaSwag (Zellers et al. 2019)   {"activity_label", "ctx_a", "ctx_b" (or "ctx"), "endings",
//   "label"} ARC (Clark et al. 2018)           {"question", "choices": {"text", "label"},
//   "answerKey"}, or
//                                     {"question": {"stem", "choices": [{"text", "label"}]},
//                                     "answerKey"}
//   LAMBADA (Paperno et al. 2016)     {"text"}
//
// Prompts are those of lm-evaluation-harness, so that scores compare with published ones.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed::scoring {

enum class TaskKind {
  choice,     // which of several continuations is the likeliest
  last_word,  // whether the last word of a passage is what the model would write
};

struct TaskQuestion {
  std::string context{};
  // Each begins with the space that parts it from the context. Of a last word, there is one.
  std::vector<std::string> continuations{};
  std::size_t answer = 0;
};

struct Task {
  TaskKind kind = TaskKind::choice;
  std::string layout;  // "HellaSwag", "ARC" or "LAMBADA"
  std::vector<TaskQuestion> questions;
};

// Empty lines are left out. Throws Error{corrupt_data} with `source` and the number of the line for
// what is not JSON, for fields that are missing or of another type, for an answer that is not among
// the choices, for fewer than two or more than 100 choices, an empty text, a line of another layout
// than the first, and Error{invalid_argument} where there is no question.
Task read_task(std::string_view text, std::string_view source);

// Of the log-likelihoods of a question's continuations, the largest (the first among equals), and
// the largest for each character after the space.
std::size_t likeliest(std::span<const double> log_likelihoods);
std::size_t likeliest_by_length(std::span<const double> log_likelihoods,
                                const TaskQuestion& question);

// A mean of independent values and its standard error, s / √n; none of a single value.
struct MeanOfAnswers {
  double mean = 0;
  std::optional<double> standard_error{};
};
MeanOfAnswers mean_of(std::span<const double> values);

}  // namespace heed::scoring
