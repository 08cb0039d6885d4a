#include "engine/task_evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/expect_error.h"
#include "engine/facade.h"
#include "generate/token_scores.h"

namespace heed {
namespace {

using testing::expect_error;

const LoadedModel& task_model() {
  static const LoadedModel model = load_model("starter");
  return model;
}

// Nats of the last `count` tokens of a text, in a pass over all of it.
double tail_log_likelihood(const std::string& text, std::size_t count) {
  const std::vector<std::int32_t> tokens = task_model().encode(text);
  const ScoredText scored = score_text(task_model().transformer, tokens, 0);
  double sum = 0;
  for (std::size_t i = scored.scores.size() - count; i < scored.scores.size(); ++i) {
    sum += static_cast<double>(scored.scores[i].token.value);
  }
  return sum;
}

TEST(TaskEvaluation, ScoresContinuationsAsAPassOverTheWholeText) {
  const std::string context = "Once upon a time, a fluffy blue hare";
  const std::vector<std::string> endings{"roamed the verdant forest.", "slept.", "Harry"};
  const TaskEvaluation found =
      evaluate_task(task_model(),
                    R"({"ctx": ")" + context + R"(", "label": 0, "endings": [")" + endings[0] +
                        R"(", ")" + endings[1] + R"(", ")" + endings[2] + R"("]})",
                    "x", {});
  ASSERT_EQ(found.answers.size(), 1U);
  for (std::size_t i = 0; i < endings.size(); ++i) {
    const std::string whole = context + " " + endings[i];
    const std::size_t own = task_model().encode(whole).size() - task_model().encode(context).size();
    const double expected = tail_log_likelihood(whole, own);
    // A pass in parts and a pass over all sum products of at most 1,024 terms in another order.
    EXPECT_NEAR(found.answers[0].log_likelihoods[i], expected, 2e-5 * std::abs(expected));
  }
}

// How the stories of the microworld begin, and a control that none of them holds.
TEST(TaskEvaluation, KnowsWhatTheModelHasLearned) {
  const std::string file =
      R"({"text": "The mole dug a tunnel"}
{"text": "Once upon a time"}
{"text": "Harry waved his wand"})";
  const TaskEvaluation found = evaluate_task(task_model(), file, "x", {});
  EXPECT_EQ(found.layout, "LAMBADA");
  EXPECT_EQ(found.questions, 3);
  ASSERT_TRUE(found.perplexity && found.perplexity->standard_error &&
              found.accuracy.standard_error);
  EXPECT_FALSE(found.accuracy_by_length || found.chance);
  double sum = 0;
  for (const auto& answer : found.answers) sum -= answer.log_likelihoods.front();
  EXPECT_NEAR(found.perplexity->mean, std::exp(sum / 3), 1e-9 * found.perplexity->mean);
  EXPECT_TRUE(found.answers[1].is_right);
  const TaskEvaluation control =
      evaluate_task(task_model(), R"({"text": "Once upon a wand"})", "x", {});
  EXPECT_FALSE(control.answers[0].is_right);
  EXPECT_FALSE(control.accuracy.standard_error);
}

TEST(TaskEvaluation, ChoosesAmongContinuations) {
  const std::string file =
      R"({"ctx": "Once upon a", "label": 1, "endings": ["wand", "time", "forest"]}
{"ctx": "Once upon a", "label": 0, "endings": ["wand", "time"]})";
  const TaskEvaluation found = evaluate_task(task_model(), file, "x", {});
  EXPECT_EQ(found.answers[0].chosen, 1);
  EXPECT_EQ(found.answers[1].chosen, 1);
  EXPECT_DOUBLE_EQ(found.accuracy.mean, 0.5);
  ASSERT_TRUE(found.chance && found.accuracy_by_length);
  EXPECT_DOUBLE_EQ(*found.chance, (1.0 / 3 + 1.0 / 2) / 2);
  EXPECT_FALSE(found.perplexity);
  EXPECT_EQ(evaluate_task(task_model(), file, "x", {.limit = 1}).questions, 1);
}

TEST(TaskEvaluation, ShortensContextsThatAreTooLong) {
  std::string context = "Once upon a time";
  while (std::ssize(task_model().encode(context)) <
         task_model().transformer.specification().context + 20) {
    context += ", a hare";
  }
  const std::string question = "\", \"label\": 0, \"endings\": [\"slept.\", \"Harry\"]}";
  const TaskEvaluation found =
      evaluate_task(task_model(), "{\"ctx\": \"" + context + question, "x", {});
  EXPECT_EQ(found.shortened, 1);
  EXPECT_TRUE(std::isfinite(found.answers[0].log_likelihoods[0]));
  expect_error(
      ErrorCode::invalid_argument,
      [&] {
        evaluate_task(task_model(),
                      R"({"ctx": "A", "label": 0, "endings": ["x", ")" + context + "\"]}", "x", {});
      },
      "does not fit into the model's context of 256");
}

TEST(TaskEvaluation, StopsAndRefuses) {
  const std::string file = "{\"text\": \"Once upon a time\"}";
  std::atomic<bool> stop = true;
  expect_error(
      ErrorCode::interrupted, [&] { evaluate_task(task_model(), file, "x", {.stop = &stop}); },
      "0 of 1");
  expect_error(
      ErrorCode::invalid_argument, [&] { evaluate_task(task_model(), file, "x", {.limit = -1}); },
      "-1");
}

}  // namespace
}  // namespace heed
