// heed eval: how well a model predicts a text, or answers the questions of a test.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <numbers>
#include <optional>

#include "base/files.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/text.h"
#include "engine/evaluate.h"
#include "engine/task_evaluation.h"
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
  std::string task;
  std::int64_t limit = 0;
  EvaluationOptions evaluation;
  bool per_token = false;
  bool per_question = false;
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

TaskEvaluation evaluate_questions(const EvalOptions& options, LoadedModel& model) {
  model.cache_type = kernels::parse_cache_type(options.cache_type);
  ProgressLine line;
  const MappedFile file(options.task);
  TaskEvaluation found =
      evaluate_task(model, file.text(), in_quotes(options.task),
                    {.limit = options.limit,
                     .progress =
                         [&line](std::int64_t done, std::int64_t total) {
                           line.update({.what = "answering", .done = done, .total = total});
                         },
                     .stop = interrupt_flag()});
  line.clear();
  return found;
}

std::string share_text(const TaskEvaluation::Share& share) {
  std::optional<double> error = share.standard_error;
  if (error) *error *= 100;
  return with_error(100 * share.mean, error, 1) + " %";
}

OrderedJson share_json(const TaskEvaluation::Share& share) {
  return {{"mean", json_number(share.mean)},
          {"standard_error", json_number(share.standard_error.value_or(NAN))}};
}

OrderedJson task_json(const LoadedModel& model, const TaskEvaluation& found) {
  OrderedJson json{{"model", model.name},
                   {"layout", found.layout},
                   {"questions", found.questions},
                   {"shortened", found.shortened},
                   {"accuracy", share_json(found.accuracy)}};
  if (found.accuracy_by_length) {
    json["accuracy_by_length"] = share_json(*found.accuracy_by_length);
    json["chance"] = json_number(*found.chance);
  }
  if (found.perplexity) json["perplexity"] = share_json(*found.perplexity);
  return json;
}

OrderedJson answers_json(const TaskEvaluation& found) {
  OrderedJson answers = OrderedJson::array();
  for (const TaskEvaluation::Answer& answer : found.answers) {
    OrderedJson each{{"log_likelihoods", OrderedJson::array()}};
    for (const double value : answer.log_likelihoods) {
      each["log_likelihoods"].push_back(json_number(value));
    }
    if (found.accuracy_by_length) {
      each["chosen"] = answer.chosen;
      each["chosen_by_length"] = answer.chosen_by_length;
      each["right"] = answer.right;
    }
    each["is_right"] = answer.is_right;
    answers.push_back(std::move(each));
  }
  return answers;
}

void print_task(const TaskEvaluation& found) {
  print(fmt::format("{}, {}\n", found.layout, counted(found.questions, "question")));
  print(fmt::format("accuracy            {}\n", share_text(found.accuracy)));
  if (found.accuracy_by_length) {
    print(fmt::format("accuracy by length  {}\n", share_text(*found.accuracy_by_length)));
    print(fmt::format("by chance           {:.1f} %\n", 100 * *found.chance));
  }
  if (found.perplexity) {
    print(fmt::format("perplexity          {}\n",
                      with_error(found.perplexity->mean, found.perplexity->standard_error, 3)));
  }
  if (found.shortened > 0) {
    print(fmt::format("{} lost its beginning to fit into the context\n",
                      counted(found.shortened, "question")));
  }
}

void check_options(const EvalOptions& options) {
  const auto given = static_cast<int>(!options.text.empty()) +
                     static_cast<int>(!options.tokens.empty()) +
                     static_cast<int>(!options.task.empty());
  if (given != 1) fail_usage("give one of --text FILE, --tokens IDS and --task FILE");
  if (options.per_token && !options.json) fail_usage("--per-token needs --json");
  if (options.per_question && !options.json) fail_usage("--per-question needs --json");
  if (options.task.empty() && (options.per_question || options.limit != 0)) {
    fail_usage("--limit and --per-question are of --task");
  }
  if (!options.task.empty() && options.per_token) fail_usage("--per-token is not of --task");
}

void evaluate(const EvalOptions& options) {
  check_options(options);
  kernels::parse_cache_type(options.cache_type);  // an unknown one is refused before the work
  LoadedModel model = load_model_as(options.model, options.dtype);
  if (options.task.empty()) {
    print_result(options, model, evaluate_text(options, model));
    return;
  }
  const TaskEvaluation found = evaluate_questions(options, model);
  if (options.json) {
    OrderedJson json = task_json(model, found);
    if (options.per_question) json["answers"] = answers_json(found);
    print_json(json);
  } else {
    print_task(found);
  }
}

}  // namespace

void add_eval_command(Command app) {
  Command command =
      add_command(app, "eval", "Measure how well a model predicts a text or answers questions");
  auto options = std::make_shared<EvalOptions>();
  add_model_option(*command, options->model);
  add_dtype_option(*command, options->dtype);
  add_cache_type_option(*command, options->cache_type);
  add_text_file_option(*command, options->text);
  add_tokens_option(*command, options->tokens);
  command
      ->add_option("--task", options->task,
                   "Answer the questions of a file (HellaSwag, ARC, LAMBADA)")
      ->type_name("FILE.jsonl");
  command->add_option("--limit", options->limit, "Answer the first N questions [all]")
      ->check(at_least(1));
  command->add_flag("--per-question", options->per_question,
                    "Include each question's log-likelihoods in --json");
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
