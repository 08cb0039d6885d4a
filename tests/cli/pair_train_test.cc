// heed train --pairs from outside: every form of the texts, what is wrong in them by file and line,
// and runs that stop and go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "cli/run_heed.h"

namespace heed {
namespace {

using ::testing::HasSubstr;
using testing::Outcome;
using testing::run_heed;
using testing::TemporaryDirectory;

class PairTrainCommand : public ::testing::Test {
 protected:
  PairTrainCommand() {
    static constexpr const char* english[] = {"one", "two", "three", "four", "five"};
    static constexpr const char* german[] = {"eins", "zwei", "drei", "vier", "fuenf"};
    for (unsigned i = 0; i < 60; ++i) {
      for (unsigned word = 0; word <= i % 4; ++word) {
        const unsigned which = (i * 7 + word * word) % 5;
        const char* const space = word > 0 ? " " : "";
        source_ += std::string(space) + english[which];
        target_ += std::string(space) + german[which];
      }
      source_ += "\n";
      target_ += "\n";
    }
    write("text.en", source_);
    write("text.de", target_);
  }

  std::string path(const std::string& name) const {
    return "'" + (directory_ / name).string() + "'";
  }
  std::string write(const std::string& name, const std::string& text) const {
    write_text_file(directory_ / name, text);
    return path(name);
  }
  std::string read(const std::string& name) const { return read_text_file(directory_ / name); }

  // Lines of both sides, with a tab between.
  static std::string columns(const std::string& source, const std::string& target) {
    std::string rows;
    for (std::size_t s = 0, t = 0; s < source.size();) {
      const std::size_t end = source.find('\n', s), other = target.find('\n', t);
      rows += source.substr(s, end - s) + "\t" + target.substr(t, other - t) + "\n";
      s = end + 1;
      t = other + 1;
    }
    return rows;
  }

  Outcome train(const std::string& arguments, const std::string& before = "") const {
    return run_heed("train " + arguments + " -t 1", "HEED_CACHE=" + path("cache") + " " + before);
  }
  // A run of seconds, without BLEU.
  static std::string small() {
    return " --config translator-tiny --set measure=none --set vocabulary_size=290 --set "
           "channels=16 --set steps=4 --set evaluate_every=2 --set batch_tokens=200 --set "
           "precision=f32 ";
  }
  Outcome train_small(const std::string& pairs, const std::string& out,
                      const std::string& more = "") const {
    return train("--pairs " + pairs + small() + more + " --out " + path(out));
  }

  TemporaryDirectory directory_;
  std::string source_, target_;
};

TEST_F(PairTrainCommand, TakesTextsInEveryForm) {
  const std::string two = path("text.en") + " " + path("text.de");
  ASSERT_EQ(train_small(two, "two").status, 0);
  write("text.tsv", columns(source_, target_));
  const std::string compress =
      "gzip -k " + path("text.en") + " " + path("text.de") + " " + path("text.tsv");
  ASSERT_EQ(std::system(compress.c_str()), 0);
  int number = 0;
  for (const std::string& pairs :
       {path("text.tsv"), path("text.tsv.gz"), path("text.en.gz") + " " + path("text.de.gz"),
        path("text.en.gz") + " " + path("text.de")}) {
    const std::string out = "run-" + std::to_string(number++);
    const Outcome outcome = train_small(pairs, out);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    for (const char* file : {"/last/model.safetensors", "/last/config.json", "/best/config.json"}) {
      EXPECT_TRUE(read(out + file) == read("two" + std::string(file))) << pairs << file;
    }
  }
  // What was trained translates, by the name of the run.
  const Outcome translated = run_heed("translate 'one two' -n 4 -t 1 -m " + path("two"));
  EXPECT_EQ(translated.status, 0) << translated.err;
}

TEST_F(PairTrainCommand, EvaluatesOnOtherPairs) {
  const std::string two = path("text.en") + " " + path("text.de");
  const std::string few = write("few.en", "one two\nfive\n");
  const std::string few_targets = write("few.de", "eins zwei\nfuenf\n");
  const std::string table = write("few.tsv", "one two\teins zwei\nfive\tfuenf\n");
  for (const std::string& valid : {few + " " + few_targets, table}) {
    const Outcome outcome = train_small(two, "run", "--valid-pairs " + valid + " --json");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("62 pairs (2 for validation)"));
    std::filesystem::remove_all(directory_ / "run");
  }
}

TEST_F(PairTrainCommand, NamesFileAndLineOfWhatIsWrong) {
  const auto refused = [&](const std::string& pairs, int status,
                           const std::vector<std::string>& messages, const std::string& more = "") {
    const Outcome outcome = train_small(pairs, "refused", more);
    EXPECT_EQ(outcome.status, status) << pairs << outcome.err;
    EXPECT_EQ(outcome.out, "");
    for (const std::string& message : messages) EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(directory_ / "refused"));
  };
  const std::string english = path("text.en"), german = path("text.de");
  const std::string good = english + " " + german;
  refused(english + " " + write("short.de", "eins\nzwei\n"), 2,
          {"text.en' has 60 lines", "short.de' has 2"});
  std::string blank = target_;
  blank.insert(blank.find('\n') + 1, " \t\n");
  blank.resize(blank.rfind('\n', blank.size() - 2) + 1);
  refused(english + " " + write("blank.de", blank), 2, {"blank.de', line 2: the target is empty"});
  refused(write("blank.tsv", "one\teins\n\tzwei\n"), 2,
          {"blank.tsv', line 2: the source is empty"});
  refused(write("wide.tsv", "one\teins\ntwo\tzwei\tdeux\n"), 2, {"wide.tsv', line 2: 2 tabs"});
  refused(english, 2, {"text.en', line 1: 0 tabs"});
  std::string latin = target_;
  latin[latin.rfind("fuenf") + 1] = '\xFC';
  refused(english + " " + write("latin.de", latin), 2, {"latin.de', line 60", "not UTF-8"});
  // Lines 4 and on have four words, and as many tokens.
  refused(good, 2, {"text.en', line ", "tokens with its end, but the context of the encoder"},
          "--set context=3 --set sequence_length=0");
  refused(good, 2, {"few.tsv', line 2: the target is empty"},
          "--valid-pairs " + write("few.tsv", "one\teins\ntwo\t\n"));
  refused(english + " " + path("absent.de"), 1, {"absent.de"});
  refused(write("bad.en.gz", "no gzip") + " " + german, 1, {"bad.en.gz"});
  refused(good, 2, {"--pairs and --data cannot be given together"}, "--data " + english);
  refused(good, 2, {"--validation belongs to --data"}, "--validation " + english);
  refused(good, 1, {"no file format", "change positions=rotary"}, "--set positions=rotary");
}

TEST_F(PairTrainCommand, ResumesToTheBit) {
  int stopped_early = 0;
  for (const std::string positions : {"sinusoidal", "relative"}) {
    const std::string arguments =
        "--pairs " + path("text.en") + " " + path("text.de") + small() +
        "--set measure=bleu --set steps=120 --set evaluate_every=10 --set keep_every=50 --set "
        "residual_dropout=0.1 --set early_stop=9 --set positions=" +
        positions + " --out ";
    const std::string whole = "whole-" + positions, run = "run-" + positions;
    ASSERT_EQ(train(arguments + path(whole)).status, 0);
    // Stopped once it has evaluated.
    const std::string stop =
        "bash -c '\"$0\" \"$@\" & pid=$!; for i in $(seq 600); do grep -qs bleu \"" +
        (directory_ / run / "metrics.jsonl").string() +
        "\" && break; sleep 0.02; done; kill -TERM $pid; wait $pid'";
    const Outcome stopped = train(arguments + path(run), stop);
    EXPECT_TRUE(stopped.status == 130 || stopped.status == 0) << stopped.err;
    if (stopped.status == 130) {
      EXPECT_THAT(stopped.err, HasSubstr("--resume"));
      ++stopped_early;
    }
    const Outcome resumed = train("--resume --out " + path(run));
    ASSERT_EQ(resumed.status, 0) << resumed.err;
    for (const char* file : {"/last/model.safetensors", "/best/model.safetensors",
                             "/checkpoints/00000050/model.safetensors", "/best/config.json"}) {
      EXPECT_TRUE(read(run + file) == read(whole + file)) << file;
    }
    const std::string config = read(whole + "/last/config.json");
    EXPECT_EQ(config.find("\"positions\": \"relative\"") != std::string::npos,
              positions == "relative")
        << config;
    EXPECT_THAT(train("--resume --out " + path(run)).out, HasSubstr("no new step"));
  }
  EXPECT_GT(stopped_early, 0) << "no run was there to be resumed";
  // Other texts are refused.
  const Outcome other = train("--resume --pairs " + path("text.de") + " " + path("text.en") +
                              " --out " + path("run-relative"));
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("other text"));
}

}  // namespace
}  // namespace heed
