// What is predicted when a model is evaluated on a text.
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

// The tokens of a text after the token that its tokenizer begins texts with, or else after
// end-of-text, so that the first word is predicted too.
PredictedText text_to_predict(const LoadedModel& model, std::string_view text);

// Where no windows were chosen, a text that fits into the context is evaluated in one window, as
// the server scores the tokens of a prompt.
void choose_one_window(std::int64_t tokens, std::int64_t context, EvaluationOptions& options);

}  // namespace heed
