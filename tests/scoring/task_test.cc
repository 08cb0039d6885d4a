#include "scoring/task.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"

namespace heed::scoring {
namespace {

using testing::expect_error;
using Continuations = std::vector<std::string>;

TaskQuestion only_question(const std::string& line) {
  const Task task = read_task(line, "'x.jsonl'");
  EXPECT_EQ(task.questions.size(), 1U);
  return task.questions.front();
}

TEST(Task, ReadsHellaSwag) {
  const std::string line =
      R"({"ind": 4, "activity_label": "Baking cookies", "ctx_a": "A woman stands.", "ctx_b": "the Oven",)"
      R"( "ctx": "unused", "endings": ["is hot. [substeps] Wait  now.", "is [title] cold."], "label": 1})";
  const TaskQuestion question = only_question(line);
  EXPECT_EQ(question.context, "Baking cookies: A woman stands. The oven");
  EXPECT_EQ(question.continuations, (Continuations{" is hot. Wait now.", " is. cold."}));
  EXPECT_EQ(question.answer, 1U);
  const TaskQuestion without_parts =
      only_question(R"({"ctx": "It rains [", "endings": ["a", "b", "c"], "label": "2"})");
  EXPECT_EQ(without_parts.context, "It rains [");
  EXPECT_EQ(without_parts.answer, 2U);
}

TEST(Task, ReadsBothLayoutsOfArc) {
  const TaskQuestion listed = only_question(
      R"({"id": "7", "question": "Why?", "choices": {"text": ["because", "so"], "label": ["1", "2"]},)"
      R"( "answerKey": "2"})");
  EXPECT_EQ(listed.context, "Question: Why?\nAnswer:");
  EXPECT_EQ(listed.continuations, (Continuations{" because", " so"}));
  EXPECT_EQ(listed.answer, 1U);
  const TaskQuestion nested = only_question(
      R"({"question": {"stem": "Why?", "choices": [{"text": "because", "label": "A"},)"
      R"( {"text": "so", "label": "B"}]}, "answerKey": "A"})");
  EXPECT_EQ(nested.context, listed.context);
  EXPECT_EQ(nested.continuations, listed.continuations);
  EXPECT_EQ(nested.answer, 0U);
}

TEST(Task, ReadsLambada) {
  const Task task = read_task("{\"text\": \"He saw the sea\"}\n\n{\"text\": \"a b.\"}\r\n", "x");
  EXPECT_EQ(task.layout, "LAMBADA");
  EXPECT_EQ(task.kind, TaskKind::last_word);
  ASSERT_EQ(task.questions.size(), 2U);
  EXPECT_EQ(task.questions[0].context, "He saw the");
  EXPECT_EQ(task.questions[0].continuations, (Continuations{" sea"}));
  EXPECT_EQ(task.questions[1].continuations, (Continuations{" b."}));
}

struct BadLine {
  const char* line;
  const char* says;
};

TEST(Task, RefusesOtherLinesByNumber) {
  const BadLine lines[] = {
      {"{", "line 2"},
      {"[]", "must be an object"},
      {R"({"txt": "a b"})", "no field \"endings\" (HellaSwag), \"answerKey\" (ARC) or \"text\""},
      {R"({"text": "word"})", "its last word"},
      {R"({"text": "ends "})", "its last word"},
      {R"({"text": 5})", "text"},
      {R"({"endings": ["a", "b"], "label": 0, "ctx": "c"})", "HellaSwag's layout, and the first"},
  };
  for (const BadLine& bad : lines) {
    expect_error(
        ErrorCode::corrupt_data,
        [&] { read_task(std::string("{\"text\": \"a b\"}\n") + bad.line, "'x.jsonl'"); },
        "'x.jsonl', line 2", bad.says);
  }
}

TEST(Task, RefusesChoicesThatCannotBeAnswered) {
  const BadLine lines[] = {
      {R"({"endings": ["a", "b"], "label": 0})", "no field \"ctx\""},
      {R"({"endings": ["a", "b"], "ctx": "c"})", "no field \"label\""},
      {R"({"endings": ["a", "b"], "ctx": "c", "label": 2})", "2"},
      {R"({"endings": ["a", "b"], "ctx": "c", "label": "-1"})", "label must be 0 to 1"},
      {R"({"endings": ["a"], "ctx": "c", "label": 0})", "has 1 choices"},
      {R"({"endings": ["a", " "], "ctx": "c", "label": 0})", "choice 1 is empty"},
      {R"({"endings": "ab", "ctx": "c", "label": 0})", "endings must be a list"},
      {R"({"endings": ["a", 3], "ctx": "c", "label": 0})", "an ending"},
      {R"({"question": "q", "answerKey": "A"})", "no field \"choices\""},
      {R"({"question": "q", "choices": {"text": ["a", "b"], "label": ["A"]}, "answerKey": "A"})",
       "two lists of one length"},
      {R"({"question": "q", "choices": [{"text": "a"}], "answerKey": "A"})", "\"label\""},
      {R"({"question": "q", "choices": {"text": ["a", "b"], "label": ["A", "B"]}, "answerKey": "C"})",
       "answerKey is \"C\""},
  };
  for (const BadLine& bad : lines) {
    expect_error(
        ErrorCode::corrupt_data, [&] { read_task(bad.line, "'x.jsonl'"); }, "'x.jsonl', line 1",
        bad.says);
  }
  std::string many = R"({"ctx": "c", "label": 0, "endings": ["a")";
  for (int i = 0; i < 100; ++i) many += ", \"a\"";
  expect_error(
      ErrorCode::corrupt_data, [&] { read_task(many + "]}", "x"); }, "more than 100 choices");
  expect_error(
      ErrorCode::invalid_argument, [] { read_task("\n\n", "'x.jsonl'"); },
      "'x.jsonl' has no questions");
}

TEST(Task, ChoosesByLikelihoodAndByLength) {
  const TaskQuestion question{.context = "", .continuations = {" ab", " äöüßabcd", " b"}};
  const std::vector<double> scores{-2, -7, -2};
  EXPECT_EQ(likeliest(scores), 0U) << "the first among equals";
  EXPECT_EQ(likeliest_by_length(scores, question), 1U)
      << "7 / 8 for a character; 7 / 12 for a byte";
}

TEST(Task, MeansHaveStandardErrors) {
  const MeanOfAnswers found = mean_of(std::vector<double>{1, 0, 1, 1});
  EXPECT_DOUBLE_EQ(found.mean, 0.75);
  ASSERT_TRUE(found.standard_error);
  EXPECT_DOUBLE_EQ(*found.standard_error, std::sqrt(0.75 * 0.25 / 3));  // √(p (1 − p) / (n − 1))
  EXPECT_FALSE(mean_of(std::vector<double>{1}).standard_error);
}

}  // namespace
}  // namespace heed::scoring
