// heed eval: how well a model predicts a text.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <numbers>
#include <optional>

#include "base/files.h"
#include "base/json.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/text.h"
#include "engine/evaluate.h"
#include "engine/views/token_json.h"
#include "train/evaluation.h"

namespace heed::cli {
namespace {

struct EvalOptions {
  std::string model = "starter";
  std::string dtype;
  std::string cache_type = "f32";
  std::string text;
  std::string tokens;
  EvaluationOptions evaluation;
  bool per_token = false;
  bool json = false;
};

// For fewer, packing the weights takes longer than it saves.
constexpr std::size_t tokens_worth_packing_for = 8192;

struct EvalResult {
  Evaluation evaluation;
  std::int64_t bytes = 0;  // of the text that was predicted; 0 for token ids, which have none
  std::vector<std::int32_t> tokens;
  std::vector<float> losses;  // of tokens[1:]

  double bits_per_byte() const {
    return evaluation.nats_per_token * static_cast<double>(evaluation.tokens) / std::numbers::ln2 /
           static_cast<double>(bytes);
  }
};

// Token ids are taken as they are.
PredictedText read_what_to_predict(const EvalOptions& options, const LoadedModel& model) {
  if (options.text.empty() == options.tokens.empty()) {
    fail_usage("give one of --text FILE and --tokens IDS");
  }
  if (!options.tokens.empty()) return {.tokens = parse_token_ids(options.tokens)};
  return text_to_predict(model, MappedFile(options.text).text());
}

EvalResult evaluate_text(const EvalOptions& options, LoadedModel& model) {
  PredictedText text = read_what_to_predict(options, model);
  EvalResult result{.bytes = text.bytes, .tokens = std::move(text.tokens)};
  if (result.tokens.size() > tokens_worth_packing_for) pack_for_prompts(model);

  ProgressLine line;
  EvaluationOptions evaluation = options.evaluation;
  evaluation.progress = line.callback();
  evaluation.stop = interrupt_flag();
  evaluation.cache_type = kernels::parse_cache_type(options.cache_type);
  result.losses.resize(result.tokens.size());
  evaluation.scored = [&](std::int64_t first, std::span<const float> losses) {
    std::copy(losses.begin(), losses.end(), result.losses.begin() + first);
  };
  choose_one_window(std::ssize(result.tokens), model.transformer.specification().context,
                    evaluation);
  Evaluator evaluator(model.transformer.specification(), evaluation);
  result.evaluation = evaluator.evaluate(model.transformer, TokenList(result.tokens));
  line.clear();
  return result;
}

void print_result(const EvalOptions& options, const LoadedModel& model, const EvalResult& result) {
  const Evaluation& evaluation = result.evaluation;
  const double perplexity = std::exp(evaluation.nats_per_token);
  if (!options.json) {
    std::optional<double> perplexity_error = evaluation.standard_error;
    if (perplexity_error) *perplexity_error *= perplexity;
    print(fmt::format("loss          {} nats per token, over {}\n",
                      with_error(evaluation.nats_per_token, evaluation.standard_error, 4),
                      counted(evaluation.tokens, "token")));
    print(fmt::format("perplexity    {}\n", with_error(perplexity, perplexity_error, 3)));
    if (result.bytes > 0) {
      print(fmt::format("bits per byte {:.4f} over {}\n", result.bits_per_byte(),
                        counted(result.bytes, "byte")));
    }
    return;
  }
  OrderedJson json;
  json["model"] = model.name;
  json["loss"] = json_number(evaluation.nats_per_token);
  json["standard_error"] = json_number(evaluation.standard_error.value_or(NAN));
  json["perplexity"] = json_number(perplexity);
  json["bits_per_byte"] =
      result.bytes > 0 ? json_number(result.bits_per_byte()) : OrderedJson(nullptr);
  json["token_count"] = evaluation.tokens;
  json["byte_count"] = result.bytes;
  if (options.per_token) {
    json["tokens"] = tokens_json(model, result.tokens);
    OrderedJson log_probabilities = OrderedJson::array({nullptr});  // nothing predicts the first
    for (std::size_t i = 1; i < result.losses.size(); ++i) {
      log_probabilities.push_back(json_number(-result.losses[i]));
    }
    json["log_probabilities"] = std::move(log_probabilities);
  }
  print_json(json);
}

void evaluate(const EvalOptions& options) {
  if (options.per_token && !options.json) fail_usage("--per-token needs --json");
  kernels::parse_cache_type(options.cache_type);  // an unknown one is refused before the work
  LoadedModel model = load_model_as(options.model, options.dtype);
  print_result(options, model, evaluate_text(options, model));
}

}  // namespace

void add_eval_command(Command app) {
  Command command = add_command(app, "eval", "Measure how well a model predicts a text");
  auto options = std::make_shared<EvalOptions>();
  add_model_option(*command, options->model);
  add_dtype_option(*command, options->dtype);
  add_cache_type_option(*command, options->cache_type);
  add_text_file_option(*command, options->text);
  add_tokens_option(*command, options->tokens);
  command
      ->add_option("-c,--context", options->evaluation.sequence_length,
                   "Split the text into windows of N tokens [context]")
      ->check(at_least(1));
  command
      ->add_option("--stride", options->evaluation.stride,
                   "Start a window every N tokens [--context]")
      ->check(at_least(1));
  command->add_option("-b,--batch", options->evaluation.batch_size, "Evaluate N windows at once")
      ->capture_default_str()
      ->check(at_least(1));
  command->add_flag("--per-token", options->per_token,
                    "Include each token's log-probability in --json");
  add_json_option(*command, options->json);
  command->callback([options] { evaluate(*options); });
}

}  // namespace heed::cli
