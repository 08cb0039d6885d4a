#include "engine/predicted_text.h"

#include "generate/token_scores.h"

namespace heed {

PredictedText text_to_predict(const LoadedModel& model, std::string_view text) {
  const std::vector<std::int32_t> encoded = model.encode(text);
  const Tokenizer& tokenizer = model.require_tokenizer();
  PredictedText predicted{.bytes = std::ssize(text)};
  if (tokenizer.text_template().before.empty()) {
    if (const auto mark = tokenizer.end_of_text()) {
      predicted.tokens.push_back(*mark);
    } else {
      predicted.bytes -= std::ssize(model.token_bytes(encoded.front()));
    }
  }
  predicted.tokens.insert(predicted.tokens.end(), encoded.begin(), encoded.end());
  return predicted;
}

void choose_one_window(std::int64_t tokens, std::int64_t context, EvaluationOptions& options) {
  if (options.sequence_length != 0 || options.stride != 0 || tokens > context) return;
  const ScoringShape shape = scoring_shape(tokens, context);
  options.sequence_length = shape.positions;
  options.batch_size = shape.batch;
}

}  // namespace heed
