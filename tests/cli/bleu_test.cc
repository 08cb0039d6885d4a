// heed bleu; what its scores are is tested in tests/scoring.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "cli/run_heed.h"
#include "scoring/bleu.h"

namespace heed {
namespace {

using ::testing::HasSubstr;
using testing::json_of;
using testing::Outcome;
using testing::run_heed;

// Files of a test, by name.
class BleuCommand : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    const auto path = directory_.path() / name;
    write_text_file(path, text);
    return path.string();
  }

  // Ninety sentences; every tenth has a mistake in the good translation, every second in the bad
  // one.
  std::string sentences(int wrong_one_of) {
    std::string text;
    for (int i = 0; i < 90; ++i) {
      text += i % wrong_one_of == 0 ? "The hat sat on a mat.\n" : "The cat sat on the mat.\n";
    }
    return text;
  }

  std::string reference() { return file("reference", sentences(1000)); }
  std::string good() { return file("good", sentences(10)); }
  std::string bad() { return file("bad", sentences(2)); }

  void expect_refused(const std::string& arguments, const std::string& message, int status = 2) {
    const Outcome outcome = run_heed("bleu " + arguments);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }

 private:
  testing::TemporaryDirectory directory_;
};

TEST_F(BleuCommand, GivesTheLibrarysScoreWithItsSignature) {
  const std::vector<std::string> hypotheses{"a b c d e x", "f g"};
  const std::vector<std::vector<std::string>> references{{"a b c d e f", "f g h"},
                                                         {"a b c x e y", "g"}};
  const auto score = scoring::corpus_bleu(hypotheses, references, {.lowercase = true});
  const Json document =
      json_of("bleu --json --lowercase " + file("r1", "a b c d e f\nf g h\n") + " " +
              file("r2", "A b c x e y\ng\n") + " -i " + file("h", "a b c d E x\nf g\n"));
  EXPECT_EQ(document.at("sentence_count"), 2);
  EXPECT_EQ(document.at("reference_count"), 2);
  const Json& result = document.at("systems").at(0).at("scores").at(0);
  EXPECT_EQ(result.at("metric"), "BLEU");
  EXPECT_EQ(result.at("score").get<double>(), score.score);
  EXPECT_EQ(result.at("signature").get<std::string>(), score.signature);
  EXPECT_THAT(score.signature, HasSubstr("nrefs:2|case:lc|"));
  EXPECT_FALSE(result.contains("interval"));
}

TEST_F(BleuCommand, PrintsATableAndItsSignatures) {
  const Outcome outcome =
      run_heed("bleu " + reference() + " -i " + good() + "," + bad() + " --metrics bleu,chrf++");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("90 sentences, 1 reference"));
  EXPECT_THAT(outcome.out, HasSubstr("\n  good  "));  // its name without its directory
  EXPECT_THAT(outcome.out,
              HasSubstr("  BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:"));
  EXPECT_THAT(outcome.out, HasSubstr("  chrF2++|nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|"));
}

TEST_F(BleuCommand, ComparesSystemsWithTheFirst) {
  const Json document = json_of("bleu --json --paired-bs --samples 300 " + reference() + " -i " +
                                good() + "," + bad() + " -i " + good() + " --metrics bleu,chrf");
  EXPECT_EQ(document.at("samples"), 300);
  for (const int metric : {0, 1}) {
    const auto score = [&](int system) {
      return document.at("systems").at(system).at("scores").at(metric);
    };
    EXPECT_TRUE(score(0).at("p_value").is_null());
    EXPECT_NEAR(score(1).at("p_value").get<double>(), 1.0 / 301, 1e-12);
    EXPECT_EQ(score(2).at("p_value"), 1);
    EXPECT_LT(score(1).at("score").get<double>(), score(0).at("score").get<double>());
    EXPECT_GT(score(1).at("interval").at("half_width").get<double>(), 0);
    EXPECT_THAT(score(1).at("signature").get<std::string>(), HasSubstr("|bs:300|seed:12345|"));
  }
}

TEST_F(BleuCommand, ScoresEachSentenceOfStandardInput) {
  const std::string reference = file("r", "a b\nc d e\n");
  const Outcome outcome =
      run_heed("bleu " + reference + " --sentence --metrics bleu,chrf", "printf 'a b\\nx\\n' |");
  EXPECT_EQ(outcome.out, "100.00\t100.00\n0.00\t0.00\n") << outcome.err;
}

TEST_F(BleuCommand, RefusesWhatDoesNotGoTogether) {
  const std::string one = file("one", "a\n");
  const std::string two = file("two", "a\nb\n");
  expect_refused(one + " -i " + two, "two has 2 lines, and the reference");
  expect_refused(one + " -i " + two, "one has 1 line;");
  expect_refused(one + " " + two + " -i " + one, "two has 2 lines");
  expect_refused(one + " -i " + file("empty", ""), "empty' is empty");
  expect_refused(one + " -i " + file("latin", "f\xfcr\n"), "line 1 is not UTF-8: its byte 2", 1);
  expect_refused(one + " -i " + one + " --paired-bs",
                 "expected --input BASELINE,SYSTEM, not 1 file");
  expect_refused(one + " -i " + one + " --sentence --confidence", "--sentence goes with neither");
  expect_refused(one + " -i " + one + "," + one + " --sentence", "scores one system, not 2");
  expect_refused(one + " -i " + one + " --metrics ter", "expected bleu, chrf or chrf++");
  expect_refused(one + " -i " + one + " --tokenize ja", "13a, none, char, intl or zh");
  expect_refused("-i " + one + " " + one, "put the REFERENCE first");
  expect_refused("-i " + one, "REFERENCE is required");
  expect_refused(one + " -i nowhere", "cannot open 'nowhere'", 1);
}

}  // namespace
}  // namespace heed
