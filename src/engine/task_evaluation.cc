#include "engine/task_evaluation.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/progress.h"
#include "engine/facade.h"
#include "generate/session.h"
#include "kernels/kernels.h"
#include "model/input_checks.h"

namespace heed {
namespace {

using Answer = TaskEvaluation::Answer;

// A question in tokens. What its continuations share, and one token of the context at least, is
// read once.
struct QuestionTokens {
  std::vector<std::int32_t> shared;
  // Each begins with the last token of the context, whose place predicts the first of the others.
  std::vector<std::vector<std::int32_t>> continuations;
  bool shortened = false;
};

// Context and continuation are encoded together, since the tokens of a text may depend on what
// stands after them: a continuation is what follows the tokens that both encodings begin with.
QuestionTokens tokens_of(const LoadedModel& model, const scoring::TaskQuestion& question) {
  std::vector<std::int32_t> context = model.encode(question.context);
  const std::size_t after = model.require_tokenizer().text_template().after.size();
  context.resize(context.size() - after);
  std::vector<std::vector<std::int32_t>> texts;
  std::size_t begin = context.size();
  for (const std::string& continuation : question.continuations) {
    std::vector<std::int32_t> text = model.encode(question.context + continuation);
    text.resize(text.size() - after);
    const auto differs = std::ranges::mismatch(context, text).in1;
    begin = std::min(begin, static_cast<std::size_t>(differs - context.begin()));
    texts.push_back(std::move(text));
  }
  require(begin > 0, ErrorCode::invalid_argument,
          "a context shares no token with its continuation: there is nothing to predict from");
  std::size_t longest = 0;
  for (const auto& text : texts) longest = std::max(longest, text.size());
  // The last token of all predicts nothing.
  const auto room = static_cast<std::size_t>(model.transformer.specification().context) + 1;
  const std::size_t dropped = longest > room ? longest - room : 0;
  require(dropped < begin, ErrorCode::invalid_argument,
          "a continuation of {} tokens does not fit into the model's context of {}",
          longest - begin, room - 1);
  QuestionTokens tokens;
  tokens.shortened = dropped > 0;
  const auto shared_end = context.begin() + static_cast<std::ptrdiff_t>(begin - 1);
  tokens.shared.assign(context.begin() + static_cast<std::ptrdiff_t>(dropped), shared_end);
  for (const auto& text : texts) {
    tokens.continuations.emplace_back(text.begin() + static_cast<std::ptrdiff_t>(begin - 1),
                                      text.end());
  }
  return tokens;
}

struct ContinuationScore {
  double log_likelihood = 0;
  bool likeliest = true;  // each token is the likeliest at its place
};

ContinuationScore score_continuation(Session& session, std::span<const std::int32_t> tokens) {
  require(tokens.size() > 1, ErrorCode::invalid_argument, "a continuation has no token of its own");
  const std::size_t predicted = tokens.size() - 1;
  const Tensor<float> logits = session.feed_for_all_positions(tokens.first(predicted));
  Tensor<float> losses(Shape{static_cast<std::int64_t>(predicted)});
  kernels::cross_entropy_forward(
      logits, View<const std::int32_t>(tokens.data() + 1, {static_cast<std::int64_t>(predicted)}),
      losses);
  ContinuationScore score;
  for (std::size_t i = 0; i < predicted; ++i) {
    score.log_likelihood -= static_cast<double>(losses.span()[i]);
    const std::span<const float> row = logits.view()[static_cast<std::int64_t>(i)].span();
    const auto found = std::ranges::max_element(row) - row.begin();
    score.likeliest = score.likeliest && found == tokens[i + 1];
  }
  return score;
}

Answer answer_of(Session& session, const QuestionTokens& tokens,
                 const scoring::TaskQuestion& question, scoring::TaskKind kind) {
  session.reset();
  if (!tokens.shared.empty()) session.feed(tokens.shared);
  Answer answer{.right = static_cast<std::int64_t>(question.answer)};
  bool written = true;
  for (const auto& continuation : tokens.continuations) {
    session.truncate(std::ssize(tokens.shared));
    const ContinuationScore score = score_continuation(session, continuation);
    answer.log_likelihoods.push_back(score.log_likelihood);
    written = score.likeliest;
  }
  if (kind == scoring::TaskKind::last_word) {
    answer.is_right = written;
    return answer;
  }
  answer.chosen = static_cast<std::int64_t>(scoring::likeliest(answer.log_likelihoods));
  answer.chosen_by_length =
      static_cast<std::int64_t>(scoring::likeliest_by_length(answer.log_likelihoods, question));
  answer.is_right = answer.chosen == answer.right;
  return answer;
}

template <typename Value>
TaskEvaluation::Share share_of(const std::vector<Answer>& answers, Value value) {
  std::vector<double> values;
  for (const Answer& answer : answers) values.push_back(static_cast<double>(value(answer)));
  const scoring::MeanOfAnswers found = scoring::mean_of(values);
  return {.mean = found.mean, .standard_error = found.standard_error};
}

void summarise(TaskEvaluation& found, scoring::TaskKind kind) {
  found.accuracy = share_of(found.answers, [](const Answer& answer) { return answer.is_right; });
  if (kind == scoring::TaskKind::choice) {
    found.accuracy_by_length = share_of(found.answers, [](const Answer& answer) {
      return answer.chosen_by_length == answer.right;
    });
    found.chance = share_of(found.answers, [](const Answer& answer) {
                     return 1.0 / static_cast<double>(answer.log_likelihoods.size());
                   }).mean;
    return;
  }
  TaskEvaluation::Share loss =
      share_of(found.answers, [](const Answer& answer) { return -answer.log_likelihoods.front(); });
  found.perplexity = TaskEvaluation::Share{.mean = std::exp(loss.mean)};
  // To first order: the error of e^x is e^x times that of x.
  if (loss.standard_error) {
    found.perplexity->standard_error = found.perplexity->mean * *loss.standard_error;
  }
}

}  // namespace

TaskEvaluation evaluate_task(const LoadedModel& model, std::string_view text,
                             std::string_view source, const TaskOptions& options) {
  require_predicts_next(model.transformer.specification(), "a task's evaluation");
  require(options.limit >= 0, ErrorCode::invalid_argument,
          "the number of questions must be 0 (all) or more, not {}", options.limit);
  const scoring::Task task = scoring::read_task(text, source);
  std::size_t count = task.questions.size();
  if (options.limit > 0) count = std::min(count, static_cast<std::size_t>(options.limit));
  TaskEvaluation found{.layout = task.layout, .questions = static_cast<std::int64_t>(count)};
  Session session(model.transformer, model.transformer.specification().context, model.cache_type);
  for (std::size_t i = 0; i < count; ++i) {
    require(!stop_requested(options.stop), ErrorCode::interrupted,
            "stopped after {} of {} questions", i, count);
    const scoring::TaskQuestion& question = task.questions[i];
    const QuestionTokens tokens = tokens_of(model, question);
    if (tokens.shortened) ++found.shortened;
    found.answers.push_back(answer_of(session, tokens, question, task.kind));
    if (options.progress) {
      options.progress(static_cast<std::int64_t>(i + 1), static_cast<std::int64_t>(count));
    }
  }
  summarise(found, task.kind);
  return found;
}

TaskEvaluation evaluate_task(const Model& model, const std::filesystem::path& file,
                             const TaskOptions& options) {
  return evaluate_task(ModelAccess::loaded(model), MappedFile(file).text(),
                       "'" + file.string() + "'", options);
}

}  // namespace heed
