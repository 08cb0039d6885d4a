// What is predicted where a model is evaluated on a text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/loaded_model.h"
#include "train/evaluation.h"

namespace heed {

struct PredictedText {
  std::vector<std::int32_t> tokens;
  std::int64_t bytes = 0;  // of the text that is predicted
};

// With a token in front that its tokenizer begins texts with, or else an end-of-text token, the
// first word is predicted too: as the beginning of a text.
PredictedText text_to_predict(const LoadedModel& model, std::string_view text);

// A text of `tokens` tokens that fits into the context, and for which no windows were chosen, is
// evaluated as the server evaluates a prompt whose tokens it scores.
void choose_one_window(std::int64_t tokens, std::int64_t context, EvaluationOptions& options);

}  // namespace heed
