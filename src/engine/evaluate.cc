#include "engine/evaluate.h"

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/files.h"
#include "engine/facade.h"
#include "generate/token_scores.h"
#include "heed/evaluate.h"
#include "model/input_checks.h"
#include "train/evaluation.h"

namespace heed {
namespace {

EvaluationOptions evaluation_options(const EvaluateOptions& options, std::int64_t length,
                                     std::int64_t context) {
  require(options.batch >= 1, ErrorCode::invalid_argument,
          "windows are computed in batches of 1 or more, not {}", options.batch);
  EvaluationOptions evaluation{.batch_size = options.batch,
                               .sequence_length = options.window,
                               .stride = options.stride,
                               .stop = options.stop};
  choose_one_window(length, context, evaluation);
  if (options.progress) {
    evaluation.progress = [&options](const Progress& now) {
      options.progress(now.done, now.total);
    };
  }
  return evaluation;
}

}  // namespace

TextEvaluation evaluate_tokens(const Model& model, std::span<const std::int32_t> tokens,
                               const EvaluateOptions& options) {
  const LoadedModel& loaded = ModelAccess::of_one_text(model);
  const StackSpecification& config = loaded.transformer.specification();
  require_predicts_next(config, "evaluation of a text");
  require_tokens(tokens);
  require(tokens.size() > 1, ErrorCode::invalid_argument,
          "a single token predicts nothing: give two or more");
  EvaluationOptions evaluation = evaluation_options(options, std::ssize(tokens), config.context);
  evaluation.cache_type = loaded.cache_type;
  Tensor<float> losses(Shape{std::ssize(tokens) - 1});
  evaluation.scored = [&losses](std::int64_t first, std::span<const float> scored) {
    std::ranges::copy(scored, losses.data() + first - 1);
  };
  const Evaluation found =
      Evaluator(config, evaluation)
          .evaluate(loaded.transformer, TokenList({tokens.begin(), tokens.end()}));
  return {.tokens = found.tokens,
          .loss = found.nats_per_token,
          .standard_error = found.standard_error,
          .perplexity = std::exp(found.nats_per_token),
          .losses = make_array(std::move(losses))};
}

TextEvaluation evaluate_text(const Model& model, std::string_view text,
                             const EvaluateOptions& options) {
  const LoadedModel& loaded = ModelAccess::of_one_text(model);
  const PredictedText predicted = text_to_predict(loaded, text);
  TextEvaluation evaluation = evaluate_tokens(model, predicted.tokens, options);
  if (predicted.bytes > 0) {
    const double nats = evaluation.loss * static_cast<double>(evaluation.tokens);
    evaluation.bits_per_byte = nats / std::numbers::ln2 / static_cast<double>(predicted.bytes);
  }
  return evaluation;
}

TextEvaluation evaluate_file(const Model& model, const std::filesystem::path& file,
                             const EvaluateOptions& options) {
  return evaluate_text(model, MappedFile(file).text(), options);
}

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
