// heed eval --task
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "cli/run_heed.h"

namespace heed {
namespace {

using ::testing::HasSubstr;
using testing::json_of;
using testing::Outcome;
using testing::run_heed;

class EvalTask : public ::testing::Test {
 protected:
  void SetUp() override {
    write_text_file(
        file_,
        "{\"ctx\": \"Once upon a\", \"label\": 1, \"endings\": [\"wand\", \"time\"]}\n"
        "{\"ctx\": \"Once upon a\", \"label\": 0, \"endings\": [\"wand\", \"time\"]}\n");
  }
  std::string with_task() const { return "eval --task " + file_.string(); }

  const testing::TemporaryDirectory directory_;
  const std::filesystem::path file_ = directory_.path() / "task.jsonl";
};

TEST_F(EvalTask, PrintsSharesWithErrors) {
  const Outcome outcome = run_heed(with_task());
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "HellaSwag, 2 questions\n"
            "accuracy            50.0 ± 50.0 %\n"
            "accuracy by length  50.0 ± 50.0 %\n"
            "by chance           50.0 %\n");
}

TEST_F(EvalTask, GivesEveryQuestion) {
  const Json found = json_of(with_task() + " --limit 1 --json --per-question");
  EXPECT_EQ(found["questions"], 1);
  EXPECT_EQ(found["accuracy"]["mean"], 1);
  EXPECT_EQ(found["accuracy"]["standard_error"], nullptr);
  ASSERT_EQ(found["answers"].size(), 1U);
  EXPECT_EQ(found["answers"][0]["chosen"], 1);
  EXPECT_GT(found["answers"][0]["log_likelihoods"][1], found["answers"][0]["log_likelihoods"][0]);
  EXPECT_FALSE(json_of(with_task() + " --json").contains("answers"));
}

TEST_F(EvalTask, RefusesBeforeItWorks) {
  const auto expect = [](const std::string& arguments, int status, const std::string& message) {
    const Outcome outcome = run_heed(arguments);
    EXPECT_EQ(outcome.status, status) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << arguments;
  };
  expect("eval", 2, "give one of --text FILE, --tokens IDS and --task FILE");
  expect(with_task() + " --tokens 5,6", 2, "give one of");
  expect("eval --tokens 5,6 --limit 3", 2, "--limit and --per-question are of --task");
  expect(with_task() + " --per-question", 2, "--per-question needs --json");
  expect(with_task() + " --per-token --json", 2, "--per-token is not of --task");
  write_text_file(file_, "{\"text\": \"one\"}\n");
  expect(with_task(), 1, "task.jsonl', line 1: text must be a passage");
}

}  // namespace
}  // namespace heed
